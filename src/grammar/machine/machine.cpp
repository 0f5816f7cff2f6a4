#include "grammar/machine/machine.hpp"

#include <algorithm>

namespace skein::grammar {
namespace {

using at = thread::at;
constexpr std::size_t linear_merge_max = 16;

std::size_t seen_words(const program& of, const frame& f) {
  return f.what == frame::kind::object ? of.objects[f.spec].required.size() : 0;
}

}  // namespace

bool program::array_spec::may_finish(std::uint64_t items, std::uint64_t contained) const {
  std::uint64_t size = std::max(items, least);
  if (!counts) return size <= most;
  if (contained > contains_most) return false;
  const auto count_of = [&](const std::vector<std::uint64_t>& sums, std::uint64_t first, bool rest) {
    return first < sums.size() ? sums[first] : sums.back() + (rest ? first - (sums.size() - 1) : 0);
  };
  const bool rest_can = rest_contained != none, rest_must = rest == none && rest_can;
  // The least size with as many items that can count as are needed.
  const auto before = count_of(can_count, items, rest_can);
  const auto needed = contains_least > contained ? contains_least - contained : 0;
  if (needed > ~std::uint64_t{0} - before) return false;
  if (count_of(can_count, size, rest_can) < before + needed) {
    const auto prefix_size = static_cast<std::uint64_t>(can_count.size() - 1);
    if (can_count.back() < before + needed && !rest_can) return false;
    size = can_count.back() < before + needed
               ? prefix_size + (before + needed - can_count.back())
               : static_cast<std::uint64_t>(std::ranges::lower_bound(can_count, before + needed) - can_count.begin());
  }
  const auto forced = count_of(must_count, size, rest_must) - count_of(must_count, items, rest_must);
  return size <= most && forced <= contains_most - contained;
}

bool machine::can_begin() {
  overflows_ = false;
  (void)begin();
  return !overflows_;
}

std::vector<thread> machine::begin() {
  std::vector<thread> threads;
  switch (program_.what) {
    case program::kind::json: threads.push_back({.where = at::value}); break;
    case program::kind::text: threads.push_back({.where = at::text, .a = program_.text->start}); break;
    case program::kind::rules: overflows_ = !rules_.follow(0, program::none, threads); break;
  }
  return threads;
}

bool machine::step(const std::vector<thread>& from, std::size_t first, std::size_t count, unsigned char byte,
                   std::vector<thread>& out) {
  const std::size_t begin = out.size();
  overflows_ = false;
  for (std::size_t i = 0; i < count; ++i) {
    const thread t = from[first + i];  // a copy: `out` may grow
    step_one(t, byte, out);
    if (overflows_ || out.size() - begin > program_.bounds.stacks_max * 2) return false;
  }
  if (out.size() - begin > 1) merge(out, begin);
  return out.size() - begin <= program_.bounds.stacks_max;
}

void machine::merge(std::vector<thread>& out, std::size_t from) {
  std::size_t kept = from;
  auto& hashes = hashes_;
  hashes.clear();
  for (std::size_t i = from; i < out.size(); ++i) {
    const auto h = out[i].hash(frames_);
    if (out.size() - from <= linear_merge_max) {
      if (std::ranges::find(hashes, h) != hashes.end()) continue;
      hashes.push_back(h);
    } else {
      const auto place = std::ranges::lower_bound(hashes, h);
      if (place != hashes.end() && *place == h) continue;
      hashes.insert(place, h);
    }
    out[kept++] = out[i];
  }
  out.resize(kept);
}

bool machine::blank(thread t, unsigned char byte, std::vector<thread>& out) const {
  if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return false;
  if (++t.a <= program_.bounds.whitespace_max) out.push_back(t);
  return true;
}

/// What follows a value with this digest; nothing if it may not be where it is.
void machine::end_value(std::uint32_t top, std::uint64_t value, std::vector<thread>& out) {
  if (top != program::none && frames_[top].digested) {
    top = recorded(top, value);
    if (top == program::none) return;
  }
  if (top == program::none)
    out.push_back({.where = at::end});
  else
    out.push_back({.where = frames_[top].what == frame::kind::object ? at::after_member : at::after_item, .top = top});
}

void machine::end_number(const thread& t, std::vector<thread>& out) {
  if (program_.nodes[t.spec].number->accepting[t.a] != 0)
    end_value(t.top, t.value == 0 ? 0 : digest::of_number(t), out);
}

void machine::end_container(const frame& of, std::vector<thread>& out) {
  const std::uint64_t tag = of.what == frame::kind::object ? digest::object : digest::array;
  end_value(of.parent, mixed(of.content, tag), out);
}

/// The frame with one more value; none if an equal item is in its array.
std::uint32_t machine::recorded(std::uint32_t top, std::uint64_t value) {
  frame made = frames_[top];
  if (made.what == frame::kind::object) {
    made.content += mixed(mixed(made.item, digest::object), value);  // in any order
    made.item = 0;
  } else {
    made.content = mixed(made.content, value);
    if (unique_.is_unique(made)) {
      if (unique_.is_used(made, value)) return program::none;
      made.item = value;
      made.earlier = made.last;
      made.last = static_cast<std::uint32_t>(frames_.size());
    }
  }
  return frames_.add_seen(made, seen_words(program_, made), program::none);
}

std::uint32_t machine::push(frame::kind what, std::uint32_t spec, std::uint32_t parent) {
  const std::uint32_t depth = frames_.depth_on(parent);
  if (depth > program_.bounds.depth_max) return program::none;
  frame made{.what = what, .parent = parent, .spec = spec, .depth = depth};
  made.digested = (parent != program::none && frames_[parent].digested) || unique_.is_unique(made);
  return frames_.add(made, seen_words(program_, made));
}

void machine::step_one(thread t, unsigned char byte, std::vector<thread>& out) {
  switch (t.where) {
    case at::value:
      if (!blank(t, byte, out)) begin_value(t, byte, out);
      return;
    case at::string:
    case at::name: read_string(t, byte, out); return;
    case at::number: {
      const auto& node = program_.nodes[t.spec];
      const auto next = node.number_step(t.a, byte, t.b + 1);
      if (next != dfa::dead) {
        t.a = next;
        if (node.limits_numbers()) ++t.b;
        if (t.value != 0) digest::add_number_byte(t, byte);
        if (t.value == 0 || unique_.has_number(t)) out.push_back(t);
      } else {
        ended_.clear();
        end_number(t, ended_);
        if (ended_.empty()) return;
        const thread after = ended_.front();
        if (blank(after, byte, out)) return;
        if (after.where == at::after_member) after_member(after, byte, out);
        if (after.where == at::after_item) after_item(after, byte, out);
      }
      return;
    }
    case at::word:
      if (static_cast<unsigned char>(json_words[t.spec][t.a]) != byte) return;
      if (++t.a == json_words[t.spec].size()) return end_value(t.top, digest::of_word(t.spec), out);
      out.push_back(t);
      return;
    case at::object_open:
      if (blank(t, byte, out)) return;
      if (byte == '}' && may_close_object(frames_[t.top])) return end_container(frame(frames_[t.top]), out);
      if (byte == '"' && strings_.begin_name(t)) out.push_back(t);
      return;
    case at::next_name:
      if (blank(t, byte, out)) return;
      if (byte == '"' && strings_.begin_name(t)) out.push_back(t);
      return;
    case at::colon:
      if (blank(t, byte, out)) return;
      if (byte == ':') out.push_back({.where = at::value, .top = t.top, .spec = t.spec});
      return;
    case at::after_member:
      if (!blank(t, byte, out)) after_member(t, byte, out);
      return;
    case at::array_open: {
      if (blank(t, byte, out)) return;
      const auto& array = program_.arrays[frames_[t.top].spec];
      if (byte == ']') {
        if (array.least == 0 && array.contains_least == 0) end_container(frame(frames_[t.top]), out);
        return;
      }
      items_.clear();
      add_items(t, items_);
      for (const auto& item : items_) begin_value(item, byte, out);
      return;
    }
    case at::after_item:
      if (!blank(t, byte, out)) after_item(t, byte, out);
      return;
    case at::end: (void)blank(t, byte, out); return;
    case at::text:
      t.a = program_.text->step(t.a, byte);
      if (t.a != dfa::dead) out.push_back(t);
      return;
    case at::rule: {
      const auto& here = program_.instructions[t.a];
      if (here.low <= byte && byte <= here.high && !rules_.follow(here.out, t.top, out)) overflows_ = true;
      return;
    }
  }
}

void machine::begin_value(const thread& t, unsigned char byte, std::vector<thread>& out) {
  const auto& node = program_.nodes[t.spec];
  switch (byte) {
    case '"':
      for (const auto spec : node.strings) {
        thread made{.top = t.top};
        if (strings_.begin_string(made, spec)) out.push_back(made);
      }
      return;
    case '{':
      for (const auto spec : node.objects)
        if (const auto top = push(frame::kind::object, spec, t.top); top != program::none)
          out.push_back({.where = at::object_open, .top = top});
      return;
    case '[':
      for (const auto spec : node.arrays)
        if (const auto top = push(frame::kind::array, spec, t.top); top != program::none)
          out.push_back({.where = at::array_open, .top = top});
      return;
    case 'n':
      if (node.null) begin_word(t, 0, out);
      return;
    case 't':
      if (node.truth) begin_word(t, 1, out);
      return;
    case 'f':
      if (node.falsehood) begin_word(t, 2, out);
      return;
    default: break;
  }
  if (!node.number) return;
  const auto state = node.number_step(node.number->start, byte, 1);
  const std::uint32_t counted = node.limits_numbers() ? 1 : 0;
  if (state == dfa::dead) return;
  thread made{.where = at::number, .top = t.top, .spec = t.spec, .a = state, .b = counted};
  if (t.top != program::none && frames_[t.top].digested) {
    digest::begin_number(made);
    digest::add_number_byte(made, byte);
    if (!unique_.has_number(made)) return;
  }
  out.push_back(made);
}

void machine::begin_word(const thread& t, std::uint32_t which, std::vector<thread>& out) const {
  if (t.top != program::none && unique_.is_unique(frames_[t.top]) &&
      unique_.is_used(frames_[t.top], digest::of_word(which)))
    return;
  out.push_back({.where = at::word, .top = t.top, .spec = which, .a = 1});
}

void machine::read_string(thread t, unsigned char byte, std::vector<thread>& out) {
  if (byte != '"' || t.escape != 0) {
    if (strings_.read(t, byte)) out.push_back(t);
    return;
  }
  if (t.where == at::string) {
    if (strings_.may_end(t)) end_value(t.top, t.value, out);
    return;
  }
  string_machine::ended_name name;
  if (!strings_.end_name(t, name)) return;
  frame object = frames_[t.top];
  object.item = t.value;
  object.beyond |= name.label.beyond;
  const auto& spec = program_.objects[object.spec];
  const bool watched = spec.counts_others && object.count < spec.counted_max(), other = name.bit == program::none;
  const bool again = watched && other && unique_.is_used(object, t.value);
  // Only as much is counted as matters, so that more frames are equal.
  if (!again) object.count = std::min(object.count + 1, spec.counted_max());
  object.beyond &= spec.beyond;
  const bool is_enough = object.count == spec.counted_max(), noted = watched && other && !again && !is_enough;
  if (noted) {
    object.names += mixed(digest::object, t.value);
    object.earlier = object.last;
  } else if (is_enough) {
    object.names = 0;
    object.last = program::none;
  }
  const auto add = [&](std::uint32_t node) {
    if (noted) object.last = static_cast<std::uint32_t>(frames_.size());
    const auto top = frames_.add_seen(object, seen_words(program_, object), name.bit);
    out.push_back({.where = at::colon, .top = top, .spec = node});
  };
  add(name.label.node);
  const auto before = object.beyond;
  for (unsigned i = 0; i < name.label.witnesses; ++i) {
    const auto& witness = spec.witnesses[name.label.first_witness + i];
    // Bits that were seen before need no witness.
    if (witness.node == program::none || (witness.beyond & before) != 0) continue;
    object.beyond = before | witness.beyond;
    add(witness.node);
  }
}

bool machine::may_close_object(const frame& object) const {
  const auto& spec = program_.objects[object.spec];
  if (object.count < spec.least || (spec.beyond & ~object.beyond) != 0) return false;
  const auto seen = frames_.seen(object, spec.required.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    if ((spec.required[i] & ~seen[i]) != 0) return false;
  const auto has = [&](std::uint32_t bit) { return (seen[bit / 64] >> (bit % 64) & 1) != 0; };
  return std::ranges::none_of(spec.dependent, [&](const auto& pair) { return has(pair.first) && !has(pair.second); });
}

void machine::after_member(thread t, unsigned char byte, std::vector<thread>& out) {
  const frame object = frames_[t.top];
  if (byte == '}' && may_close_object(object)) end_container(object, out);
  if (byte != ',') return;
  const auto& spec = program_.objects[object.spec];
  if (strings_.has_other_name(object) || strings_.has_name(object, 0, static_cast<std::uint32_t>(spec.names.size())))
    out.push_back({.where = at::next_name, .top = t.top});
}

/// The threads before the next item of an array. An item may count for `contains` or not; both are tried.
void machine::add_items(const thread& t, std::vector<thread>& out) {
  const frame array = frames_[t.top];
  const auto& spec = program_.arrays[array.spec];
  if (array.count >= spec.most) return;
  const auto add = [&](std::uint32_t node, std::uint32_t contained) {
    if (node == program::none || (spec.unique && !unique_.has_value(array, node))) return;
    frame made = array;
    made.count = array.count + 1;
    made.contained = contained;
    if (spec.counts && !spec.may_finish(made.count, contained)) return;
    const std::uint64_t counted =
        std::max<std::uint64_t>({spec.prefix.size(), spec.least, spec.most == ~std::uint64_t{0} ? 0 : spec.most});
    if (!spec.unique) made.count = std::min(made.count, counted);
    out.push_back({.where = at::value, .top = frames_.add_seen(made, 0, program::none), .spec = node});
  };
  add(spec.node_at(array.count), array.contained);
  if (!spec.counts || array.contained >= spec.contains_most) return;
  const bool unlimited = spec.contains_most == ~std::uint64_t{0};
  if (unlimited && array.contained >= spec.contains_least) return;  // more of them change nothing
  add(spec.contained_at(array.count), array.contained + 1);
}

void machine::after_item(thread t, unsigned char byte, std::vector<thread>& out) {
  const frame array = frames_[t.top];
  const auto& spec = program_.arrays[array.spec];
  if (byte == ']' && array.count >= spec.least && (!spec.counts || array.contained >= spec.contains_least))
    end_container(array, out);
  if (byte == ',') add_items(t, out);
}

bool machine::may_end(const thread& t) const {
  switch (t.where) {
    case at::end: return true;
    case at::number: return t.top == program::none && program_.nodes[t.spec].number->accepting[t.a] != 0;
    case at::text: return program_.text->accepting[t.a] != 0;
    default: return false;
  }
}

void machine::compact(std::vector<thread>& threads) {
  frame_store kept;
  std::vector<std::uint32_t> moved(frames_.size(), program::none);
  std::vector<std::uint32_t> open;
  const auto copy_of = [&](std::uint32_t f) { return f == program::none ? f : moved[f]; };
  for (auto& t : threads) {
    if (t.top != program::none) open.push_back(t.top);
    while (!open.empty()) {
      const auto from = open.back();
      frame made = frames_[from];
      const std::size_t before = open.size();
      if (moved[from] == program::none)
        for (const auto needed : {made.parent, made.last, made.earlier})
          if (needed != program::none && needed != from && moved[needed] == program::none) open.push_back(needed);
      if (open.size() > before) continue;
      open.pop_back();
      if (moved[from] != program::none) continue;
      const bool is_last = made.last == from;
      made.parent = copy_of(made.parent);
      made.earlier = copy_of(made.earlier);
      made.last = is_last ? static_cast<std::uint32_t>(kept.size()) : copy_of(made.last);
      const auto words = seen_words(program_, made);
      moved[from] = kept.add_copy(made, frames_.seen(made, words));
    }
    t.top = copy_of(t.top);
  }
  frames_ = std::move(kept);
}

}  // namespace skein::grammar
