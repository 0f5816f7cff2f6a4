#include "grammar/call_grammar.hpp"

#include <iterator>
#include <utility>

#include "grammar/compiled_schema.hpp"
#include "grammar/schema/language_pool.hpp"

namespace skein::grammar {
namespace {

template <typename T>
std::uint32_t count_of(const std::vector<T>& list) {
  return static_cast<std::uint32_t>(list.size());
}

template <typename T>
void append(std::vector<T>& to, std::vector<T>& more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Joins the programs of schemas. Node 0 is the root.
class call_program {
 public:
  explicit call_program(const options& how) : how_(how), work_(how.bounds) {
    made_.what = program::kind::json;
    made_.bounds = how.bounds;
    made_.nodes.emplace_back();
    notes_ = how.notes;
  }

  /// Adds a function that may be called.
  [[nodiscard]] result<void> add(const call_schemas::function& of) {
    const auto root = part(of.arguments);
    if (!root) return root.error();
    program::node arguments;
    arguments.objects = made_.nodes[*root].objects;
    if (arguments.objects.empty())
      return error{error_kind::invalid_argument, "no object satisfies the schema", std::string(of.arguments.field)};
    program::string_spec name;
    name.literal = true;
    name.literals.emplace_back(of.name);
    program::node named;
    named.strings = {count_of(made_.strings)};
    made_.strings.push_back(std::move(name));
    program::object_spec call;
    call.names = {"arguments", "name"};
    call.labels.resize(2);
    call.labels[0].node = node(std::move(arguments));
    call.labels[1].node = node(std::move(named));
    call.required = {3};
    call.second_first = true;
    calls_.push_back(count_of(made_.objects));
    made_.objects.push_back(std::move(call));
    return {};
  }

  /// The root is a call, or a list of at most `calls_max`, or what the answer's schema allows.
  [[nodiscard]] result<std::shared_ptr<const grammar>> finish(std::size_t calls_max,
                                                              const std::optional<schema_part>& answer) {
    program::node root;
    if (answer) {
      const auto other = part(*answer);
      if (!other) return other.error();
      root = made_.nodes[*other];
    }
    root.objects.insert(root.objects.end(), calls_.begin(), calls_.end());
    if (calls_max > 1) {
      program::array_spec list;
      program::node call;
      call.objects = calls_;
      list.rest = node(std::move(call));
      list.least = 1;
      list.most = calls_max;
      root.arrays.push_back(count_of(made_.arrays));
      made_.arrays.push_back(std::move(list));
    }
    root.satisfiable = true;
    made_.nodes.front() = std::move(root);
    return std::make_shared<const grammar>(std::move(made_), std::move(notes_));
  }

 private:
  std::uint32_t node(program::node made) {
    made.satisfiable = true;
    made_.nodes.push_back(std::move(made));
    return count_of(made_.nodes) - 1;
  }

  /// Compiles a part; its root.
  result<std::uint32_t> part(const schema_part& of) {
    const auto& bounds = how_.bounds;
    bytes_ += of.schema.size();
    if (bytes_ > bounds.source_bytes_max && of.schema.size() <= bounds.source_bytes_max)
      return too_much("bytes", bounds.source_bytes_max);
    auto compiled = compile_schema(of.schema, how_, work_, languages_);
    if (!compiled && compiled.error().kind == error_kind::unsupported && !of.relaxed.empty()) {
      note(of, "the schema is not enforced: " + compiled.error().message);
      compiled = compile_schema(of.relaxed, how_, work_, languages_);
    }
    if (!compiled) {
      error why = compiled.error();
      why.field = of.field;
      return why;
    }
    for (const auto& each : compiled->notes) note(of, each);
    if (made_.nodes.size() + compiled->made.nodes.size() > bounds.nodes_max)
      return too_much("combinations of subschemas", bounds.nodes_max);
    return join(std::move(compiled->made));
  }

  void note(const schema_part& of, const std::string& what) { notes_.push_back(std::string(of.field) + ": " + what); }

  /// Appends the tables of a program; its root.
  std::uint32_t join(program part) {
    const auto nodes = count_of(made_.nodes), strings = count_of(made_.strings), objects = count_of(made_.objects),
               arrays = count_of(made_.arrays);
    const auto move = [&](std::uint32_t& index) {
      if (index != program::none) index += nodes;
    };
    for (auto& each : part.nodes) {
      for (auto& index : each.strings) index += strings;
      for (auto& index : each.objects) index += objects;
      for (auto& index : each.arrays) index += arrays;
    }
    for (auto& each : part.objects) {
      for (auto& label : each.labels) move(label.node);
      for (auto& witness : each.witnesses) move(witness.node);
      move(each.other.node);
      for (auto& [label, follows] : each.other_by_label) move(follows.node);
    }
    for (auto& each : part.arrays) {
      for (auto& index : each.prefix) move(index);
      for (auto& index : each.prefix_contained) move(index);
      move(each.rest);
      move(each.rest_contained);
    }
    append(made_.nodes, part.nodes);
    append(made_.strings, part.strings);
    append(made_.objects, part.objects);
    append(made_.arrays, part.arrays);
    return nodes;
  }

  const options& how_;
  budget work_;
  language_pool languages_{work_};
  program made_;
  std::vector<std::string> notes_;
  std::vector<std::uint32_t> calls_;  // object_spec of each function
  std::size_t bytes_ = 0;             // of the schemas
};

}  // namespace

result<std::shared_ptr<const grammar>> compile_calls(const call_schemas& of, const options& how) {
  if (of.functions.size() > how.bounds.alternatives_max)
    return too_much("alternatives at one place", how.bounds.alternatives_max);
  call_program made(how);
  for (const auto& each : of.functions)
    if (const auto added = made.add(each); !added) return added.error();
  return made.finish(of.calls_max, of.answer);
}

}  // namespace skein::grammar
