#include "cli/process_sources.h"

namespace plimsoll::cli {

const SourceText& ProcessSources::of(std::string_view file) {
  if (const auto known = known_.find(file); known != known_.end()) return known->second;
  SourceText& text = known_[std::string(file)];
  if (file.empty() || file[0] == '<') return text;
  if (files_) files_->look_again();
  const std::optional<FileText> found =
      files_ ? files_->read(file, kLargestSource) : read_text(open_(std::string(file)), kLargestSource);
  if (found) text = {SourceOrigin::kDisk, split_lines(found->text)};
  return text;
}

}  // namespace plimsoll::cli
