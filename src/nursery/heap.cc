#include "nursery/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace plimsoll::nursery {
namespace {

constexpr std::size_t kSmallestNursery = std::size_t{64} << 10U;
constexpr std::size_t kLargestNursery = std::size_t{16} << 30U;

Status check_sampling(const Distance& distance) {
  if (distance.is_valid()) return Ok{};
  return Error{ErrorKind::kUsage, "the distance of sample points must be from 64 bytes to 4 GiB, or 0 for none"};
}

}  // namespace

Result<std::unique_ptr<Heap>> Heap::create(const HeapSettings& settings) {
  PLIMSOLL_TRY(check_sampling(settings.sampling));
  if (settings.nursery_bytes < kSmallestNursery || settings.nursery_bytes > kLargestNursery)
    return Error{ErrorKind::kUsage, "a nursery must have from 64 KiB to 16 GiB"};
  if (settings.most_bytes < OldSpace::reserved_bytes(settings.nursery_bytes))
    return Error{ErrorKind::kUsage, "most_bytes of a heap must be " +
                                        std::to_string(OldSpace::reserved_bytes(settings.nursery_bytes)) +
                                        " or more: so much may it take to move all of this nursery"};
  if (settings.seed == 0) return Error{ErrorKind::kUsage, "the seed of the sample points must not be 0"};
  HeapSettings in_words = settings;
  in_words.nursery_bytes &= ~std::size_t{7};
  void* memory = ::mmap(nullptr, in_words.nursery_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return system_error("cannot map the nursery", errno);
  return std::unique_ptr<Heap>(new Heap(in_words, static_cast<char*>(memory)));
}

Heap::Heap(const HeapSettings& settings, char* nursery)
    : free_(nursery),
      limit_(nursery),
      accounted_(nursery),
      nursery_(nursery),
      nursery_bytes_(settings.nursery_bytes),
      types_(settings.types.begin(), settings.types.end()),
      observer_(settings.observer),
      point_(settings.sampling, settings.seed),
      collector_(types_, nursery, nursery_bytes_, settings.most_bytes) {
  set_limit();
}

Heap::~Heap() { ::munmap(nursery_, nursery_bytes_); }

Status Heap::set_sampling(Distance distance) {
  PLIMSOLL_TRY(check_sampling(distance));
  account();
  point_.set_distance(distance);
  set_limit();
  return Ok{};
}

Statistics Heap::statistics() const {
  Statistics now = counts_;
  now.allocated_bytes = allocated_before_ + in_nursery();
  now.old_bytes = collector_.old_space().used_bytes();
  now.held_bytes = collector_.old_space().held_bytes() + nursery_bytes_;
  return now;
}

void Heap::account() {
  // The limit lies before the next point: there is none in here.
  (void)point_.advance(static_cast<std::uint64_t>(free_ - accounted_));
  accounted_ = free_;
}

void Heap::set_limit() {
  // An object that ends with the byte of the point must come the slow way: the limit is one byte before that.
  const auto to_end = static_cast<std::uint64_t>(nursery_ + nursery_bytes_ - free_);
  limit_ = free_ + std::min(to_end, point_.ahead() - 1);
}

bool Heap::make_room(std::size_t size) {
  if (size <= static_cast<std::size_t>(nursery_ + nursery_bytes_ - free_)) return true;
  if (!collect_minor()) return false;
  return true;  // a nursery is larger than any small object
}

Object* Heap::allocate_slowly(TypeId type, std::size_t size) {
  if (size > OldSpace::kLargestSmall) return allocate_large(type, size);
  if (!make_room(size)) return nullptr;
  account();
  auto* object = reinterpret_cast<Object*>(free_);
  object->word_ = Object::first_word(type, size);
  const std::uint64_t points = point_.advance(size);
  if (points > 0) take_sample(object, points);
  free_ += size;
  accounted_ = free_;
  set_limit();
  return object;
}

Object* Heap::allocate_large(TypeId type, std::size_t size) {
  constexpr std::size_t kLargest = std::size_t{1} << 39U;
  if (size > kLargest) return nullptr;
  size = rounded(size);
  // Large objects hurry the nursery's collection on, or a program of nothing but large ones would never have one.
  if (collector_.young_large_bytes() + size > 2 * nursery_bytes_ && collector_.young_large_bytes() > 0)
    (void)collect_minor();
  Object* object = collector_.allocate_large(type, size);
  if (object == nullptr) {
    (void)collect_all();  // which may free something even if memory is out
    object = collector_.allocate_large(type, size);
  }
  if (object == nullptr) return nullptr;
  account();
  const std::uint64_t points = point_.advance(size);
  if (points > 0) take_sample(object, points);
  allocated_before_ += size;
  counts_.allocated_large_bytes += size;
  set_limit();
  return object;
}

void Heap::take_sample(Object* object, std::uint64_t points) {
  ++counts_.samples;
  counts_.points += points;
  const std::uint64_t number = next_sample_++;
  collector_.watch(number, object);
  if (observer_ != nullptr)
    observer_->sampled({number, object->type(), object->size(), points, points * point_.distance().mean_bytes,
                        allocated_before_ + in_nursery()});
}

bool Heap::collect_minor() {
  account();
  if (!collector_.collect_minor(in_nursery(), observer_, counts_)) return false;
  allocated_before_ += in_nursery();
  free_ = accounted_ = nursery_;
  set_limit();
  return true;
}

bool Heap::collect_all() {
  if (!collect_minor()) return false;
  // What marking under way has reached may have died since: it is finished, and another one begun.
  if (!collector_.is_idle()) collector_.collect_major(observer_, counts_);
  collector_.collect_major(observer_, counts_);
  return true;
}

}  // namespace plimsoll::nursery
