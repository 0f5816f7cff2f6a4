#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/state_value.hpp"
#include "storage/database/database.hpp"
#include "storage/records/records.hpp"
#include "storage/states/model_table.hpp"

namespace skein::storage {

/// Owner and model of a state; every record contains it, and reads check it.
struct state_label {
  std::string model_identity;
  tenant_id tenant = default_tenant;
  state_key key;
  std::uint64_t tokens = 0;  ///< number of tokens fed into the state
};

/// A state record as bytes: magic, format version, label, types, arrays by name, XXH3 of all before it. Format 1 has
/// one type for all arrays and is written wherever that suffices, so that older programs can read the record; format 2
/// has a type for each array.
///
/// `type`: the elements' type in the record, f32 or f16 (see model::convert_elements). None: the state's own, bit for
/// bit. States of version 4 are always stored in their own types.
[[nodiscard]] std::string encode_state(const state_label& label, const model::state_view& state,
                                       std::optional<dtype> type = {});
struct decoded_state {
  state_label label;
  model::state_value state;
};
/// The state of a record, converted to `format` if it was stored in other types. Errors: damaged (which check failed,
/// at which byte), conflict (another model's state; both named).
[[nodiscard]] result<decoded_state> decode_state(std::string_view bytes, const model::state_format& format,
                                                 std::string_view model_identity);
/// The same for a record of any model in the table, in the format of the model. Errors: conflict for other models (the
/// record's model and the known ones named).
[[nodiscard]] result<decoded_state> decode_state(std::string_view bytes, const model_table& models);

/// What the index contains about a state, without reading the state.
struct stored_state {
  state_key key;
  std::uint64_t bytes = 0;
  std::int64_t used_ms = 0;
};

/// States on disk: blobs outside the log, in column families of their own. Thread safe: a worker reads and writes
/// states
/// while the persistence actor writes sessions. A damaged record is moved to `quarantine`, as in session_store.
class state_store {
 public:
  /// `type` as for encode_state.
  state_store(std::shared_ptr<database> db, std::shared_ptr<const model_table> models, std::optional<dtype> type);
  /// For one model.
  state_store(std::shared_ptr<database> db, const model::state_format& format, std::string model_identity,
              std::optional<dtype> type);

  [[nodiscard]] const model_table& models() const { return *models_; }

  /// Stores the state of a committed version; the state survives the process once this returns. The version must be
  /// committed first, so that a crash cannot leave a state under a number that is given out again. Errors: conflict for
  /// a
  /// model that is not in the table. After an error the state may or may not be stored.
  [[nodiscard]] result<void> put(const state_label& label, const model::state_view& state);
  /// nullopt if there is no such state.
  [[nodiscard]] result<std::optional<decoded_state>> get(const state_key& key);
  [[nodiscard]] result<void> remove(const state_key& key);
  /// Keys, sizes and times of all states of sessions; read once at start, from the index, without the blobs.
  [[nodiscard]] result<std::vector<stored_state>> list();
  /// Removes incomplete states that a crashed process left; no lookup finds them. Called at start.
  [[nodiscard]] result<void> drop_incomplete();
  /// Stores a prefix's state with its tokens, so that the tree of prefixes can be rebuilt.
  [[nodiscard]] result<void> put_prefix(const state_label& label, std::span<const token_id> tokens,
                                        std::string_view initial_state, const model::state_view& state);
  struct stored_prefix {
    state_key key;
    tenant_id tenant;
    std::string initial_state;
    std::vector<token_id> tokens;
    std::uint64_t bytes = 0;
    std::int64_t used_ms = 0;
  };
  [[nodiscard]] result<std::vector<stored_prefix>> list_prefixes();
  /// Size of a state record of a model in bytes; 0 for an unknown model.
  [[nodiscard]] std::size_t record_bytes(std::string_view model_identity) const;

 private:
  std::shared_ptr<database> db_;
  [[nodiscard]] result<void> encode(const state_label& label, const model::state_view& state,
                                    std::string& record) const;

  std::shared_ptr<const model_table> models_;
  std::optional<dtype> type_;
  std::shared_ptr<class scratch> scratch_;
};

}  // namespace skein::storage
