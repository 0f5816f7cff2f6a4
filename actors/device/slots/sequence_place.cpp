#include "actors/device/slots/sequence_place.hpp"

#include <utility>

#include "base/check.hpp"

namespace skein::device {

bool sequence_place::leads(kind from, kind to) {
  switch (to) {
    case kind::nowhere: return false;
    case kind::waiting: return from == kind::nowhere;
    case kind::slot: return from != kind::slot && from != kind::left;
    case kind::parked: return from == kind::nowhere || from == kind::slot || from == kind::returning;
    case kind::returning: return from == kind::parked;
    case kind::left: return from != kind::left;
  }
  return false;
}

void sequence_place::go(kind to) {
  check(leads(where_, to), "a sequence moves between places as its life allows");
  where_ = to;
}

slot_id sequence_place::slot() const {
  check(has_slot(), "the sequence has a slot");
  return slot_;
}

void sequence_place::wait() { go(where_ == kind::parked ? kind::returning : kind::waiting); }

void sequence_place::stop_waiting() {
  check(where_ == kind::returning, "only a parked sequence leaves the queue without a slot");
  go(kind::parked);
}

void sequence_place::take(slot_id slot) {
  go(kind::slot);
  slot_ = slot;
  copy_ = nullptr;
}

void sequence_place::park(std::shared_ptr<outside_state> copy) {
  check(where_ != kind::returning, "a sequence is parked once");
  go(kind::parked);
  copy_ = std::move(copy);
}

void sequence_place::leave() {
  go(kind::left);
  copy_ = nullptr;
}

}  // namespace skein::device
