#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "model/state_layout.hpp"
#include "storage/database.hpp"
#include "storage/model_table.hpp"
#include "storage/records.hpp"

namespace skein::storage {

/// In which type the floats of a stored state are kept. fp16 rounds to nearest; what is beyond its range becomes its
/// largest number.
enum class state_type : std::uint8_t { fp32, fp16 };

/// Whose state it is and of which model; every record carries it, and what is read must agree.
struct state_label {
  std::string model_identity;
  tenant_id tenant = default_tenant;
  state_key key;
  std::uint64_t tokens = 0;  ///< that it has swallowed
};

/// A state record as bytes: magic, format version, label, type, arrays by name, XXH3 of all before it (design section
/// 6). decode_state answers damaged (which check failed, at which byte), conflict for another model's state (both
/// named).
[[nodiscard]] std::string encode_state(const state_label& label, const model::state_layout& layout,
                                       std::span<const float> state, state_type type);
struct decoded_state {
  state_label label;
  std::vector<float> state;
};
[[nodiscard]] result<decoded_state> decode_state(std::string_view bytes, const model::state_layout& layout,
                                                 std::string_view model_identity);
/// The same for a record of any model in the table; conflict (the record's model and the known ones named) for others.
[[nodiscard]] result<decoded_state> decode_state(std::string_view bytes, const model_table& models);

/// What stands in the database about a state without reading it.
struct stored_state {
  state_key key;
  std::uint64_t bytes = 0;
  std::int64_t used_ms = 0;
};

/// States on disk: blobs beside the log, in column families of their own. Thread safe: a worker reads and writes states
/// while the persistence actor writes its log. A damaged record is moved to `quarantine`, as in session_store.
class state_store {
 public:
  state_store(std::shared_ptr<database> db, std::shared_ptr<const model_table> models, state_type type);
  /// For one model.
  state_store(std::shared_ptr<database> db, const model::state_layout& layout, std::string model_identity,
              state_type type);

  [[nodiscard]] const model_table& models() const { return *models_; }

  /// Errors: conflict for a model that is not in the table. The state survives the process when this returns. Only for
  /// a version that is committed, so that a crash cannot leave a state for a number that is given out again. When it
  /// fails the state may be there or not.
  [[nodiscard]] result<void> put(const state_label& label, std::span<const float> state);
  /// none: there is no such state.
  [[nodiscard]] result<std::optional<decoded_state>> get(const state_key& key);
  [[nodiscard]] result<void> remove(const state_key& key);
  /// Keys, sizes and times of all states of sessions; read once at start. The small index is apart from the blobs.
  [[nodiscard]] result<std::vector<stored_state>> list();
  /// Removes what a process that died had not written in full: nobody finds it. At start.
  [[nodiscard]] result<void> drop_incomplete();
  /// A prefix's tokens are kept beside its state, so that the tree of prefixes can be built again.
  [[nodiscard]] result<void> put_prefix(const state_label& label, std::span<const token_id> tokens,
                                        std::string_view initial_state, std::span<const float> state);
  struct stored_prefix {
    state_key key;
    tenant_id tenant;
    std::string initial_state;
    std::vector<token_id> tokens;
    std::uint64_t bytes = 0;
    std::int64_t used_ms = 0;
  };
  [[nodiscard]] result<std::vector<stored_prefix>> list_prefixes();
  /// Bytes of the record of one state of a model; 0 for an unknown one.
  [[nodiscard]] std::size_t record_bytes(std::string_view model_identity) const;

 private:
  std::shared_ptr<database> db_;
  [[nodiscard]] result<void> encode(const state_label& label, std::span<const float> state, std::string& record) const;

  std::shared_ptr<const model_table> models_;
  state_type type_;
  std::shared_ptr<class scratch> scratch_;
};

}  // namespace skein::storage
