#include "cli/top_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"

namespace plimsoll::cli {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
// A key that begins like others has come alone, if nothing follows for so long.
constexpr std::int64_t kKeyPatience = 50 * kMillisecond;
// The first picture has nothing in it: the second comes soon.
constexpr std::int64_t kSoon = 250 * kMillisecond;

int milliseconds_until(std::int64_t time_ns) {
  const std::int64_t left_ns = std::max<std::int64_t>(time_ns - monotonic_ns(), 0);
  return static_cast<int>(std::min<std::int64_t>((left_ns + kMillisecond - 1) / kMillisecond, 60'000));
}

// Pictures, keys and signals, one after another.
class ScreenLoop {
 public:
  ScreenLoop(const TopShow& show, Screen& screen, TopState& state) : show_(show), screen_(screen), state_(state) {}

  TopEnd run() {
    take_picture();
    next_ns_ = monotonic_ns() + std::min(kSoon, show_.interval_ns);
    while (!end_) {
      if (!screen_.write_more()) end_ = TopEnd::kAsked;
      if (!end_) wait();
      if (!end_ && monotonic_ns() >= next_ns_) {
        next_ns_ = monotonic_ns() + show_.interval_ns;
        if (!state_.is_paused) take_picture();
      }
    }
    return *end_;
  }

 private:
  void wait() {
    std::array<pollfd, 4> events = {{{show_.signals.event(), POLLIN, 0},
                                     {show_.feed.ended(), POLLIN, 0},
                                     {has_keys_ ? screen_.input() : -1, POLLIN, 0},
                                     {screen_.has_more_to_write() ? screen_.output() : -1, POLLOUT, 0}}};
    const std::int64_t key_ns = decoder_.is_waiting() ? monotonic_ns() + kKeyPatience : INT64_MAX;
    const int ready = ::poll(events.data(), events.size(), milliseconds_until(std::min(next_ns_, key_ns)));
    if (ready == 0 && decoder_.is_waiting()) press_all(decoder_.finish());
    if (ready <= 0) return;
    if (events[0].revents != 0) obey(show_.signals.next());
    if (events[1].revents != 0) end_ = TopEnd::kProcessEnded;
    if (events[2].revents != 0) read_keys();
  }

  void obey(int signal) {
    if (TopSignals::is_end(signal)) end_ = TopEnd::kAsked;
    if (signal == SIGTSTP) suspend();
    if (signal == SIGCONT) go_on();
    if (signal == SIGWINCH) draw();
  }

  // As if we had not asked to be told of the key: the shell sees us stopped.
  void suspend() {
    screen_.leave();
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::raise(SIGTSTP);
    ::pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // here it stops, and goes on later
    ::pthread_sigmask(SIG_BLOCK, &stop, nullptr);
    go_on();
  }

  void go_on() {
    screen_.leave();
    screen_.enter();
    show_.feed.begin_anew();
    next_ns_ = monotonic_ns() + std::min(kSoon, show_.interval_ns);
    draw();
  }

  void read_keys() {
    std::array<char, 256> bytes;
    const ssize_t got = ::read(screen_.input(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // A keyboard that has gone leaves signals.
    if (got <= 0) has_keys_ = false;
    if (got > 0) press_all(decoder_.feed({bytes.data(), static_cast<std::size_t>(got)}));
  }

  void press_all(const std::vector<Key>& keys) {
    const bool was_paused = state_.is_paused;
    const std::int64_t window_ns = state_.window_ns;
    for (const Key& key : keys)
      if (press(state_, key, top_page(screen_.size())) == TopWish::kQuit) end_ = TopEnd::kAsked;
    const bool is_new = (was_paused && !state_.is_paused) || (window_ns != state_.window_ns && !state_.is_paused);
    if (is_new)
      take_picture();
    else
      draw();
  }

  void take_picture() {
    picture_ = show_.feed.picture(state_.window_ns);
    draw();
  }

  void draw() {
    select_samples(picture_, state_);
    TopScreen drawn = render_top(picture_, state_, show_.sources, screen_.size());
    if (!state_.is_help) state_.first_row = drawn.first_row;
    screen_.draw(std::move(drawn.lines));
  }

  const TopShow& show_;
  Screen& screen_;
  TopState& state_;
  TopPicture picture_;
  KeyDecoder decoder_;
  bool has_keys_ = true;
  std::int64_t next_ns_ = 0;
  std::optional<TopEnd> end_;
};

// Whether anybody can still read what is printed.
bool has_reader() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) <= 0 || (output.revents & (POLLERR | POLLNVAL)) == 0;
}

}  // namespace

TopSignals::TopSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  event_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

TopSignals::~TopSignals() {
  while (next() != 0) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int TopSignals::next() const {
  signalfd_siginfo info{};
  return ::read(event_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

bool TopSignals::is_end(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

TopEnd run_screen(const TopShow& show, Screen& screen, TopState& state) {
  return ScreenLoop(show, screen, state).run();
}

std::optional<TopEnd> wait_quietly(const TopShow& show, std::int64_t until_ns) {
  while (true) {
    std::array<pollfd, 2> events = {{{show.signals.event(), POLLIN, 0}, {show.feed.ended(), POLLIN, 0}}};
    const int ready = ::poll(events.data(), events.size(), milliseconds_until(until_ns));
    if (ready == 0 && monotonic_ns() >= until_ns) return std::nullopt;
    if (ready <= 0) continue;
    if (events[1].revents != 0) return TopEnd::kProcessEnded;
    const int signal = show.signals.next();
    if (TopSignals::is_end(signal)) return TopEnd::kAsked;
    if (signal == SIGCONT) show.feed.begin_anew();
    // There is no screen to give back: it stops as any program does.
    if (signal == SIGTSTP) ::raise(SIGSTOP);
  }
}

Result<TopEnd> run_plain(const TopShow& show, Console& console, const TopState& state, const Page& page,
                         std::size_t limit) {
  while (true) {
    if (const auto end = wait_quietly(show, monotonic_ns() + show.interval_ns)) return *end;
    if (!has_reader()) return TopEnd::kAsked;
    TopPicture picture = show.feed.picture(state.window_ns);
    select_samples(picture, state);
    PLIMSOLL_TRY(console.print(top_text(picture, state, show.sources, page, limit) + "\n"));
  }
}

}  // namespace plimsoll::cli
