#include "model/files/pickle.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "model/files/checkpoint_limits.hpp"

// The opcodes are those of Python's pickletools, protocol 2, which torch.save writes. A value has 16 bytes and refers
// to its content, so that copying one (from the memo, into a tuple) is cheap whatever its size, and nothing here
// follows references deeper than one step.
namespace skein::model {
namespace {

constexpr std::size_t max_stack = 1u << 16;  // picklers write batches of 1,000 items; other writers put all items into
                                             // one
constexpr std::size_t max_marks = 64;        // a state dict nests four deep
constexpr std::size_t max_memo = 1u << 18;   // 16 entries for every possible tensor
constexpr std::size_t max_kept = 1u << 19;   // values in tuples and dicts; a tensor has about 20
constexpr std::size_t max_line_bytes = 256;  // module or name of a global
constexpr std::size_t max_wrappers = 4;      // {"module": {"state_dict": {...}}}
constexpr std::size_t not_wrapped = ~std::size_t{0};
constexpr std::string_view wrappers[] = {"state_dict", "model", "module"};
constexpr std::size_t rebuild_arguments = 6, rebuild_arguments_with_metadata = 7;

enum class kind : std::uint8_t {
  unset,
  none,
  boolean,
  integer,
  real,
  text,
  tuple,
  list,
  dict,
  callable,
  storage,
  tensor
};

constexpr std::string_view kind_name(kind k) {
  constexpr std::string_view names[] = {"nothing", "None",   "a bool", "an int",   "a float",   "a string",
                                        "a tuple", "a list", "a dict", "a global", "a storage", "a tensor"};
  return names[static_cast<std::size_t>(k)];
}

struct value {
  kind what = kind::unset;
  std::uint32_t count = 0;  ///< text: bytes; tuple: items
  std::uint64_t first = 0;  ///< integer: its bits; text: byte of the file; callable: index of `globals`; else: index
};

enum class action : std::uint8_t { make_dict, rebuild_tensor, rebuild_parameter, storage_type };

struct global {
  std::string_view module, name;
  action what;
  dtype type = dtype::f32;
};
constexpr global globals[] = {{"collections", "OrderedDict", action::make_dict},
                              {"torch._utils", "_rebuild_tensor_v2", action::rebuild_tensor},
                              {"torch._utils", "_rebuild_parameter", action::rebuild_parameter},
                              {"torch", "FloatStorage", action::storage_type, dtype::f32},
                              {"torch", "BFloat16Storage", action::storage_type, dtype::bf16},
                              {"torch", "HalfStorage", action::storage_type, dtype::f16},
                              {"torch", "DoubleStorage", action::storage_type, dtype::f64},
                              {"torch", "CharStorage", action::storage_type, dtype::i8},
                              {"torch", "ByteStorage", action::storage_type, dtype::u8},
                              {"torch", "IntStorage", action::storage_type, dtype::i32},
                              {"torch", "LongStorage", action::storage_type, dtype::i64}};

struct storage {
  std::string_view key;
  dtype type;
  std::uint64_t elements;
};

/// Member functions return false after the first fault, which `fault_` keeps.
class machine {
 public:
  machine(byte_span file, std::uint64_t begin, std::uint64_t end)
      : file_(file.first(static_cast<std::size_t>(end))), at_(begin) {}

  result<std::vector<pickled_entry>> run() {
    std::uint8_t protocol = 0, opcode = 0;
    if (!number(opcode) || opcode != 0x80 || !number(protocol) || protocol != 2) {
      fail("the pickle does not have protocol 2, which torch.save writes");
      return fault_;
    }
    do {
      opcode_at_ = at_;
      if (!number(opcode) || !step(opcode)) return fault_;
    } while (opcode != '.');
    return std::move(state_dict_);
  }

 private:
  bool step(std::uint8_t opcode) {
    switch (opcode) {
      case '(': return mark();
      case '.': return stop();
      case '}': return push_dict();
      case ']': return push({kind::list});
      case ')': return push({kind::tuple});
      case 't': return tuple_from_mark();
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 'N': return push({kind::none});
      case 0x88: return push({kind::boolean, 0, 1});
      case 0x89: return push({kind::boolean});
      case 'K': return push_integer<std::uint8_t>();
      case 'M': return push_integer<std::uint16_t>();
      case 'J': return push_integer<std::int32_t>();
      case 0x8a: return push_long();
      case 'G': return skip(8) && push({kind::real});
      case 'X': return push_text();
      case 'q': return put<std::uint8_t>();
      case 'r': return put<std::uint32_t>();
      case 'h': return get<std::uint8_t>();
      case 'j': return get<std::uint32_t>();
      case 'c': return push_global();
      case 'Q': return push_storage();
      case 'R': return call();
      case 'b': return build();
      case 's': return set_items(2);
      case 'u': return set_items_from_mark();
      case 'a': return append(1);
      case 'e': return append_from_mark();
      default: return fail("opcode " + std::to_string(opcode) + " is not accepted in a state dict");
    }
  }

  // ------------------------------------------------------------ bytes
  template <typename T>
  bool number(T& out) {
    if (!fits(at_, sizeof out, file_.size())) return fail("the pickle ends in the middle");
    out = load<T>(file_, at_);
    at_ += sizeof out;
    return true;
  }
  bool skip(std::uint64_t bytes) {
    if (!fits(at_, bytes, file_.size())) return fail("the pickle ends in the middle");
    at_ += bytes;
    return true;
  }
  bool line(std::string_view& out) {
    const std::string_view ahead = text_at(file_, at_, std::min<std::uint64_t>(file_.size() - at_, max_line_bytes + 1));
    const std::size_t length = ahead.find('\n');
    if (length == std::string_view::npos) return fail("the name of a global is not terminated");
    out = ahead.substr(0, length);
    at_ += length + 1;
    return true;
  }

  // ------------------------------------------------------------ stack
  bool push(value v) {
    if (stack_.size() == max_stack) return fail("more than " + std::to_string(max_stack) + " values on the stack");
    stack_.push_back(v);
    return true;
  }
  /// Values above the topmost mark; those below are not accessible until that mark is removed.
  [[nodiscard]] std::size_t available() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }
  bool pop(value& out) {
    if (available() == 0) return fail("a value is missing on the stack");
    out = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool pop(value& out, kind wanted, std::string_view role) {
    if (!pop(out)) return false;
    return out.what == wanted || fail(std::string(role) + " is " + std::string(kind_name(out.what)));
  }
  bool mark() {
    if (marks_.size() == max_marks) return fail("more than " + std::to_string(max_marks) + " marks");
    marks_.push_back(stack_.size());
    return true;
  }
  /// Removes the topmost mark and returns the number of values above it.
  bool take_mark(std::size_t& count) {
    if (marks_.empty()) return fail("a mark is missing on the stack");
    count = available();
    marks_.pop_back();
    return true;
  }
  /// Counts values that stay in memory until the end.
  bool keep(std::size_t count) {
    kept_ += count;
    return kept_ <= max_kept || fail("more than " + std::to_string(max_kept) + " values in tuples and dicts");
  }

  // ------------------------------------------------------------ plain values
  template <typename T>
  bool push_integer() {
    T n{};
    return number(n) && push({kind::integer, 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(n))});
  }
  bool push_long() {
    std::uint8_t bytes = 0;
    if (!number(bytes)) return false;
    if (bytes > 8) return fail("an int of more than 64 bits");
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < bytes; ++i) {
      std::uint8_t byte = 0;
      if (!number(byte)) return false;
      bits |= static_cast<std::uint64_t>(byte) << (8 * i);
    }
    if (bytes > 0 && bytes < 8 && bits >> (8 * bytes - 1) != 0) bits |= ~std::uint64_t{0} << (8 * bytes);
    return push({kind::integer, 0, bits});
  }
  bool push_text() {
    std::uint32_t bytes = 0;
    if (!number(bytes)) return false;
    const std::uint64_t first = at_;
    return skip(bytes) && push({kind::text, bytes, first});
  }
  bool push_dict() {
    if (!keep(1)) return false;
    dicts_.emplace_back();
    wrapped_.push_back(not_wrapped);
    return push({kind::dict, 0, dicts_.size() - 1});
  }
  bool tuple(std::size_t count) {
    if (available() < count) return fail("a value is missing on the stack");
    if (!keep(count)) return false;
    const value made{kind::tuple, static_cast<std::uint32_t>(count), items_.size()};
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    items_.insert(items_.end(), first, stack_.end());
    stack_.erase(first, stack_.end());
    return push(made);
  }
  bool tuple_from_mark() {
    std::size_t count = 0;
    return take_mark(count) && tuple(count);
  }

  // ------------------------------------------------------------ memo
  template <typename T>
  bool put() {
    T index{};
    if (!number(index)) return false;
    if (available() == 0) return fail("a value is missing on the stack");
    if (index >= max_memo) return fail("memo index " + std::to_string(index) + " is too large");
    if (index >= memo_.size()) memo_.resize(index + 1);
    memo_[index] = stack_.back();
    return true;
  }
  template <typename T>
  bool get() {
    T index{};
    if (!number(index)) return false;
    if (index >= memo_.size() || memo_[index].what == kind::unset)
      return fail("memo index " + std::to_string(index) + " was never set");
    return push(memo_[index]);
  }

  // ------------------------------------------------------------ dicts and lists
  bool append(std::size_t count) {  // the items of a list are not needed
    if (available() < count + 1) return fail("a value is missing on the stack");
    stack_.resize(stack_.size() - count);
    return stack_.back().what == kind::list ||
           fail("items are appended to " + std::string(kind_name(stack_.back().what)));
  }
  bool append_from_mark() {
    std::size_t count = 0;
    return take_mark(count) && append(count);
  }
  bool set_items(std::size_t count) {
    if (available() < count + 1 || count % 2 != 0) return fail("a value is missing on the stack");
    const std::size_t first = stack_.size() - count;
    const value target = stack_[first - 1];
    if (target.what != kind::dict) return fail("items are set in " + std::string(kind_name(target.what)));
    for (std::size_t i = first; i < stack_.size(); i += 2) {
      if (stack_[i + 1].what == kind::dict && is_wrapper(stack_[i])) wrap(target.first, stack_[i + 1].first);
      if (stack_[i + 1].what != kind::tensor) continue;
      if (stack_[i].what != kind::text) return fail("a tensor's name is " + std::string(kind_name(stack_[i].what)));
      if (!keep(2)) return false;
      dicts_[target.first].push_back({stack_[i], stack_[i + 1]});
    }
    stack_.resize(first);
    return true;
  }
  bool set_items_from_mark() {
    std::size_t count = 0;
    return take_mark(count) && set_items(count);
  }
  /// Sets attributes of an OrderedDict (`_metadata`), which are dropped.
  bool build() {
    value state;
    if (!pop(state, kind::dict, "the argument of BUILD")) return false;
    if (available() == 0) return fail("a value is missing on the stack");
    return stack_.back().what == kind::dict || fail("BUILD on " + std::string(kind_name(stack_.back().what)));
  }

  // ------------------------------------------------------------ globals and calls
  bool push_global() {
    std::string_view module, name;
    if (!line(module) || !line(name)) return false;
    for (std::size_t i = 0; i < std::size(globals); ++i)
      if (globals[i].module == module && globals[i].name == name) return push({kind::callable, 0, i});
    return fail("global " + printable(std::string(module) + "." + std::string(name)) + " is refused");
  }
  [[nodiscard]] std::span<const value> items(const value& tuple) const {
    return std::span(items_).subspan(tuple.first, tuple.count);
  }
  /// ("storage", type, key, location, elements)
  bool push_storage() {
    value id;
    if (!pop(id, kind::tuple, "a persistent id")) return false;
    const auto part = items(id);
    if (part.size() != 5 || part[0].what != kind::text || text(part[0]) != "storage" ||
        part[1].what != kind::callable || globals[part[1].first].what != action::storage_type ||
        part[2].what != kind::text || part[4].what != kind::integer)
      return fail("a persistent id is not a tensor storage");
    if (part[2].count > max_tensor_name_bytes) return fail("the key of a storage is too long");
    if (static_cast<std::int64_t>(part[4].first) < 0) return fail("a storage has a negative size");
    if (storages_.size() == max_tensors) return fail("more than " + std::to_string(max_tensors) + " storages");
    storages_.push_back({text(part[2]), globals[part[1].first].type, part[4].first});
    return push({kind::storage, 0, storages_.size() - 1});
  }
  bool call() {
    value arguments, function;
    if (!pop(arguments, kind::tuple, "the arguments of REDUCE") ||
        !pop(function, kind::callable, "the callable of REDUCE"))
      return false;
    switch (globals[function.first].what) {
      case action::make_dict:
        return arguments.count == 0 ? push_dict() : fail("OrderedDict is called with arguments; none are accepted");
      case action::rebuild_tensor: return rebuild_tensor(items(arguments));
      case action::rebuild_parameter: return rebuild_parameter(items(arguments));
      case action::storage_type: break;
    }
    return fail("REDUCE calls a storage type");
  }
  /// (tensor, requires_grad, backward_hooks)
  bool rebuild_parameter(std::span<const value> argument) {
    if (argument.size() != 3 || argument[0].what != kind::tensor)
      return fail("_rebuild_parameter is called without a tensor");
    return push(argument[0]);
  }
  /// (storage, offset, shape, stride, requires_grad, backward_hooks[, metadata])
  bool rebuild_tensor(std::span<const value> argument) {
    if (argument.size() != rebuild_arguments && argument.size() != rebuild_arguments_with_metadata)
      return fail("_rebuild_tensor_v2 is called with " + std::to_string(argument.size()) + " arguments");
    if (argument[0].what != kind::storage || argument[1].what != kind::integer || argument[2].what != kind::tuple ||
        argument[3].what != kind::tuple)
      return fail("_rebuild_tensor_v2 is called with arguments of the wrong type");
    if (tensors_.size() == max_tensors) return fail("more than " + std::to_string(max_tensors) + " tensors");
    const auto& from = storages_[argument[0].first];
    pickled_tensor made{from.key, from.type, from.elements, argument[1].first, {}, {}, opcode_at_};
    if (static_cast<std::int64_t>(argument[1].first) < 0) return fail("a tensor has a negative offset");
    if (argument[2].count != argument[3].count) return fail("a tensor's shape and stride differ in length");
    if (!numbers(argument[2], 1, "dimension", made.shape) || !numbers(argument[3], 0, "stride", made.stride))
      return false;
    tensors_.push_back(std::move(made));
    return push({kind::tensor, 0, tensors_.size() - 1});
  }
  bool numbers(const value& tuple, std::int64_t least, const std::string& role, std::vector<std::int64_t>& out) {
    if (tuple.count > max_dimensions)
      return fail("a tensor has more than " + std::to_string(max_dimensions) + " dimensions");
    for (const value& item : items(tuple)) {
      const auto n = static_cast<std::int64_t>(item.first);
      if (item.what != kind::integer) return fail("a tensor's " + role + " is " + std::string(kind_name(item.what)));
      if (n < least) return fail("a tensor's " + role + " is " + std::to_string(n));
      out.push_back(n);
    }
    return true;
  }

  // ------------------------------------------------------------ the end
  bool stop() {
    value top;
    if (!pop(top, kind::dict, "the result of the pickle")) return false;
    if (!stack_.empty() || !marks_.empty()) return fail("the pickle results in more than one value");
    if (at_ != file_.size()) return fail("bytes follow the end of the pickle");
    const auto& tensors = dicts_[unwrapped(top.first)];
    state_dict_.reserve(tensors.size());
    for (const auto& [name, tensor] : tensors) {
      if (name.count == 0 || name.count > max_tensor_name_bytes || !valid_utf8(text(name))) {
        fault_ = damaged(name.first, "a tensor name is empty, too long or not UTF-8");
        return false;
      }
      state_dict_.push_back({text(name), tensors_[tensor.first]});
    }
    return true;
  }

  /// Whether trainers save the state dict under that key.
  [[nodiscard]] bool is_wrapper(const value& key) const {
    return key.what == kind::text && std::ranges::find(wrappers, text(key)) != std::end(wrappers);
  }
  /// The dict with the tensors: `dict`, or a nested one with more tensors. A dict may contain itself. Of several dicts
  /// under such keys the one with the most tensors is used: a trainer may keep its settings in another.
  void wrap(std::size_t outer, std::size_t inner) {
    std::size_t& wrapped = wrapped_[outer];
    if (wrapped == not_wrapped || dicts_[unwrapped(inner)].size() > dicts_[unwrapped(wrapped)].size()) wrapped = inner;
  }
  [[nodiscard]] std::size_t unwrapped(std::size_t dict) const {
    std::size_t best = dict;
    for (std::size_t depth = 0; depth < max_wrappers && wrapped_[dict] != not_wrapped; ++depth) {
      dict = wrapped_[dict];
      if (dicts_[dict].size() > dicts_[best].size()) best = dict;
    }
    return best;
  }

  [[nodiscard]] std::string_view text(const value& v) const { return text_at(file_, v.first, v.count); }

  bool fail(std::string_view what) {
    fault_ = damaged(opcode_at_, what);
    return false;
  }

  struct dict_entry {
    value name, tensor;
  };

  byte_span file_;  // up to the end of the pickle
  std::uint64_t at_;
  std::uint64_t opcode_at_ = at_;
  std::vector<value> stack_;
  std::vector<std::size_t> marks_;
  std::vector<value> memo_;
  std::vector<value> items_;  // of all tuples, back to back
  std::vector<std::vector<dict_entry>> dicts_;
  std::vector<std::size_t> wrapped_;  // for each dict the dict under a key of `wrappers`, or not_wrapped
  std::vector<storage> storages_;
  std::vector<pickled_tensor> tensors_;
  std::size_t kept_ = 0;
  std::vector<pickled_entry> state_dict_;
  error fault_;
};

}  // namespace

result<std::vector<pickled_entry>> read_state_dict(byte_span file, std::uint64_t begin, std::uint64_t end) {
  return machine(file, begin, end).run();
}

}  // namespace skein::model
