// cli/screen.h: a terminal as a screen: keys come one by one, lines stand where they are put, and whatever happens, the
// terminal is as it was when this ends.
#pragma once

#include <termios.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/screen_line.h"

namespace plimsoll::cli {

// What a screen writes to a terminal to have it show `lines`, of which those in `before` are there already. Pure.
std::string changes_between(const std::vector<Cell>& before, const std::vector<Cell>& lines, ScreenSize size,
                            const Paint& paint);

// The terminal of this process. One at a time. Gives it back when destroyed; a fatal signal does so, too.
class Screen {
 public:
  // An error if standard output is no terminal.
  static Result<std::unique_ptr<Screen>> open(const Paint& paint);
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  // Gives the terminal back for a while; and takes it again, empty.
  void leave();
  void enter();

  [[nodiscard]] ScreenSize size() const;
  // Shows these lines. Does not wait for a slow terminal: what it has not taken yet is written when it is ready.
  void draw(std::vector<Cell> lines);
  [[nodiscard]] bool has_more_to_write() const { return !unwritten_.empty(); }
  // Writes as much as the terminal takes. False if it is gone.
  bool write_more();

  // Where keys come from; -1: nowhere. Bytes are there when poll says so.
  [[nodiscard]] int input() const { return input_.get(); }
  [[nodiscard]] int output() const { return output_.get(); }

 private:
  Screen(UniqueFd output, UniqueFd input, const Paint& paint)
      : output_(std::move(output)), input_(std::move(input)), paint_(paint) {}

  UniqueFd output_, input_;
  const Paint paint_;
  termios before_{};
  bool has_termios_ = false;
  bool is_entered_ = false;
  ScreenSize drawn_size_;
  std::vector<Cell> drawn_;
  std::string unwritten_;
};

}  // namespace plimsoll::cli
