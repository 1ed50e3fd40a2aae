// cli/screen.cc: escape sequences that every terminal of the last thirty years knows, and termios.
#include "cli/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "cli/utf8.h"

namespace plimsoll::cli {
namespace {

// The other screen, without a cursor, and lines that are too long end at its edge.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

// What the handler of fatal signals gives back.
struct Borrowed {
  int fd = -1;
  termios before{};
};
Borrowed borrowed;
std::atomic<bool> is_borrowed{false};

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};

// Async-signal-safe. The action is the default again: the signal does its work when this returns.
void give_back_and_die(int signal) {
  if (is_borrowed.exchange(false)) {
    [[maybe_unused]] const ssize_t written = ::write(borrowed.fd, kLeave.data(), kLeave.size());
    ::tcsetattr(borrowed.fd, TCSANOW, &borrowed.before);
  }
  ::raise(signal);
}

void set_fatal_actions(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(handler == SIG_DFL ? 0U : static_cast<unsigned>(SA_RESETHAND));
  for (const int signal : kFatal) ::sigaction(signal, &action, nullptr);
}

// The terminal as a file of our own, so that not to wait for it is no matter of others who write to it.
UniqueFd reopened(int fd) {
  if (const char* name = ::ttyname(fd); name != nullptr) {
    UniqueFd own(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
    if (own.is_open()) return own;
  }
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void write_for_a_while(int fd, std::string_view text) {
  constexpr int kPatienceMs = 300;
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    pollfd ready{fd, POLLOUT, 0};
    if (written < 0 && errno != EINTR && (errno != EAGAIN || ::poll(&ready, 1, kPatienceMs) <= 0)) return;
  }
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_equal(const Cell& a, const Cell& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Span& x, const Span& y) { return x.text == y.text && x.style == y.style; });
}

std::string line_in_place(const Cell& line, std::size_t row, ScreenSize size, const Paint& paint) {
  std::string out = fmt::format("\x1b[{};1H", row + 1);
  std::size_t column = 0;
  bool is_sure = true;  // that the terminal finds our texts as wide as we do
  for (const Span& span : line) {
    if (!is_sure) out += fmt::format("\x1b[{}G", column + 1);
    out += paint(span.style, span.text);
    is_sure = is_sure && is_ascii(span.text);
    column += display_width(span.text);
  }
  // (At the right edge the cursor stays on the last cell, which would go.)
  if (column < size.columns) out += is_sure ? "\x1b[K" : fmt::format("\x1b[{}G\x1b[K", column + 1);
  return out;
}

}  // namespace

std::string changes_between(const std::vector<Cell>& before, const std::vector<Cell>& lines, ScreenSize size,
                            const Paint& paint) {
  std::string out;
  for (std::size_t row = 0; row < std::min(lines.size(), size.rows); ++row)
    if (row >= before.size() || !is_equal(before[row], lines[row])) out += line_in_place(lines[row], row, size, paint);
  return out;
}

Result<std::unique_ptr<Screen>> Screen::open(const Paint& paint) {
  if (::isatty(STDOUT_FILENO) != 1) return Error{ErrorKind::kUsage, "standard output is no terminal"};
  UniqueFd output = reopened(STDOUT_FILENO);
  if (!output.is_open()) return system_error("cannot open the terminal", errno);
  // Standard input may be the program's; the keyboard is there nevertheless.
  UniqueFd input = ::isatty(STDIN_FILENO) == 1
                       ? reopened(STDIN_FILENO)
                       : UniqueFd(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  std::unique_ptr<Screen> screen(new Screen(std::move(output), std::move(input), paint));
  screen->enter();
  return screen;
}

Screen::~Screen() { leave(); }

void Screen::enter() {
  if (is_entered_) return;
  has_termios_ = ::tcgetattr(output_.get(), &before_) == 0;
  borrowed = {output_.get(), before_};
  is_borrowed.store(has_termios_);
  set_fatal_actions(give_back_and_die);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  raw.c_lflag |= NOFLSH;                        // Ctrl-C would cut off what is on its way, within a sequence, too
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON);  // Ctrl-S would stop everything
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (has_termios_)
    while (::tcsetattr(output_.get(), TCSANOW, &raw) != 0 && errno == EINTR) {
    }
  is_entered_ = true;
  unwritten_ = kEnter;
  drawn_.clear();
}

void Screen::leave() {
  if (!is_entered_) return;
  is_entered_ = false;
  // What has begun must end first: half an escape sequence would swallow the next.
  write_for_a_while(output_.get(), unwritten_ + std::string(kLeave));
  unwritten_.clear();
  if (has_termios_) ::tcsetattr(output_.get(), TCSANOW, &before_);
  is_borrowed.store(false);
  set_fatal_actions(SIG_DFL);
}

ScreenSize Screen::size() const {
  winsize found{};
  if (::ioctl(output_.get(), TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) return {};
  constexpr unsigned short kMost = 1000;
  return {std::min(found.ws_col, kMost), std::min(found.ws_row, kMost)};
}

void Screen::draw(std::vector<Cell> lines) {
  if (has_more_to_write()) return;  // this picture is left out
  const ScreenSize now = size();
  if (now != drawn_size_) {
    drawn_.clear();
    unwritten_ = "\x1b[2J";
    drawn_size_ = now;
  }
  unwritten_ += changes_between(drawn_, lines, now, paint_);
  drawn_ = std::move(lines);
}

bool Screen::write_more() {
  while (!unwritten_.empty()) {
    const ssize_t written = ::write(output_.get(), unwritten_.data(), unwritten_.size());
    if (written > 0) unwritten_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno == EAGAIN) return true;
    if (written < 0 && errno != EINTR) return false;
  }
  return true;
}

}  // namespace plimsoll::cli
