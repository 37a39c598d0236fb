#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "core/error.h"

namespace norma {
namespace {

constexpr std::string_view kTemporaryMark = ".norma-tmp-";
constexpr std::size_t kBufferBytes = 1 << 16;
// Linux moves at most this many bytes in one call.
constexpr std::int64_t kMostBytesAtOnce = 1 << 30;

std::string reason(int error) { return std::strerror(error); }

int open_again(const char* path, int flags, mode_t mode = 0) {
  int descriptor;
  do {
    descriptor = ::open(path, flags | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// write(2), with a file-size limit as the error EFBIG. By default the limit's signal, SIGXFSZ, ends
// the process before anybody can report or tidy up. The signal goes to the thread that writes, so
// it is held back here and taken off again.
ssize_t write_checked(int descriptor, const void* bytes, std::size_t count) {
  sigset_t limit_signal, before;
  sigemptyset(&limit_signal);
  sigaddset(&limit_signal, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit_signal, &before);
  const ssize_t written = ::write(descriptor, bytes, count);
  const int error = errno;
  if (written < 0 && error == EFBIG && sigismember(&before, SIGXFSZ) == 0) {
    const timespec no_wait{};
    while (sigtimedwait(&limit_signal, nullptr, &no_wait) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

std::string read_file(const std::string& path) {
  const int descriptor = open_again(path.c_str(), O_RDONLY);
  require(descriptor >= 0, "{}: cannot be opened: {}", path, reason(errno));
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kBufferBytes + before / 2);
    const ssize_t got = ::read(descriptor, text.data() + before,
                               std::min<std::size_t>(text.size() - before, kMostBytesAtOnce));
    if (got < 0 && errno != EINTR) {
      const int error = errno;
      ::close(descriptor);
      throw Error::format("{}: cannot be read: {}", path, reason(error));
    }
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
  }
  ::close(descriptor);
  return text;
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open_again(path_.c_str(), O_RDONLY | O_NONBLOCK);
  require(descriptor_ >= 0, "{}: cannot be opened: {}", path_, reason(errno));
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    const std::string why = !known ? reason(errno)
                            : S_ISDIR(status.st_mode)
                                ? "it is a folder"
                                : "it is a pipe or a device; copy it to a file first";
    ::close(descriptor_);
    throw Error::format("{}: cannot be read: {}", path_, why);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read_at(std::int64_t offset, void* destination, std::int64_t bytes) const {
  char* to = static_cast<char*>(destination);
  while (bytes > 0) {
    const ssize_t got = ::pread(
        descriptor_, to, static_cast<std::size_t>(std::min(bytes, kMostBytesAtOnce)), offset);
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, "{}: cannot be read: {}", path_, reason(errno));
    require(got > 0, "{}: expected {} more bytes at offset {}; the file ends there", path_, bytes,
            offset);
    to += got;
    offset += got;
    bytes -= got;
  }
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) {
    path_ = std::filesystem::weakly_canonical(path, error).string();
    require(!error, "{}: cannot be written: {}", path, error.message());
  }
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  require(!exists || !S_ISDIR(status.st_mode), "{}: cannot be written: it is a folder", path_);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = open_again(path_.c_str(), O_WRONLY);
  } else {
    temporary_ = temporary_beside(path_);
    descriptor_ = open_again(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666);
    // Who may read the file does not change when it is written anew.
    if (descriptor_ >= 0 && exists) (void)::fchmod(descriptor_, status.st_mode & 07777);
  }
  require(descriptor_ >= 0, "{}: cannot be written: {}", path_, reason(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what, int error) const {
  const bool no_space = error == ENOSPC || error == EDQUOT;
  throw Error::format("{}: {}: {}; {}{}", path_, what, reason(error),
                      temporary_.empty() ? "what was written is lost" : "the file is as it was",
                      no_space ? "; make space on the disk" : "");
}

void AtomicFile::write_through(const char* bytes, std::int64_t count) {
  while (count > 0) {
    const ssize_t written = write_checked(
        descriptor_, bytes, static_cast<std::size_t>(std::min(count, kMostBytesAtOnce)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written", errno);
    bytes += written;
    count -= written;
  }
}

void AtomicFile::flush() {
  write_through(buffer_.data(), static_cast<std::int64_t>(buffer_.size()));
  buffer_.clear();
}

void AtomicFile::write(const void* bytes, std::int64_t count) {
  if (buffer_.size() + static_cast<std::size_t>(count) > kBufferBytes) flush();
  if (static_cast<std::size_t>(count) > kBufferBytes) {
    write_through(static_cast<const char*>(bytes), count);
  } else {
    buffer_.append(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  flush();
  if (temporary_.empty()) {
    const int closed = ::close(descriptor_);
    descriptor_ = -1;
    if (closed != 0) fail("cannot be written", errno);
    return;
  }
  if (::fsync(descriptor_) != 0) fail("cannot be forced to the disk", errno);
  // From here on the destructor no longer closes: a second close() could hit another's file.
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    fail("cannot be put in its place", error);
  }
  sync_folder(folder_of(path_));
}

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)),
      descriptor_(open_again(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666)) {
  require(descriptor_ >= 0, "{}: cannot be written: {}", path_, reason(errno));
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::append(std::string_view text) {
  struct stat before {};
  const bool known = ::fstat(descriptor_, &before) == 0;
  while (!text.empty()) {
    const ssize_t written = write_checked(descriptor_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      // Nothing can be done if this fails as well: a reader passes over a last line that is cut.
      if (known && S_ISREG(before.st_mode)) (void)!::ftruncate(descriptor_, before.st_size);
      throw Error::format("{}: cannot be written: {}", path_, reason(error));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AppendFile::sync() {
  // What is no regular file may know no such thing.
  require(::fsync(descriptor_) == 0 || errno == EINVAL, "{}: cannot be forced to the disk: {}",
          path_, reason(errno));
}

std::string checksum(std::string_view bytes) {
  return fmt::format("{:08x}",
                     ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::string checksum_of_file(const std::string& path) {
  const InputFile file(path);
  std::string part;
  uLong sum = 0;
  for (std::int64_t at = 0; at < file.size(); at += static_cast<std::int64_t>(part.size())) {
    part.resize(static_cast<std::size_t>(std::min<std::int64_t>(1 << 20, file.size() - at)));
    file.read_at(at, part.data(), static_cast<std::int64_t>(part.size()));
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
  }
  return fmt::format("{:08x}", sum);
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void sync_folder(const std::string& folder) {
  const int descriptor = open_again(folder.c_str(), O_RDONLY | O_DIRECTORY);
  require(descriptor >= 0, "{}: cannot be opened: {}", folder, reason(errno));
  const int failed = ::fsync(descriptor) != 0 ? errno : 0;
  ::close(descriptor);
  // Some file systems have no such thing for folders, and say so with EINVAL.
  require(failed == 0 || failed == EINVAL, "{}: cannot be forced to the disk: {}", folder,
          reason(failed));
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<std::uint64_t> count{0};
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return fmt::format("{}{}{}-{:x}{:x}-{}", path, kTemporaryMark, ::getpid(), now.tv_sec,
                     now.tv_nsec, count.fetch_add(1));
}

bool is_temporary(const std::string& path) {
  return std::filesystem::path(path).filename().string().find(kTemporaryMark) != std::string::npos;
}

}  // namespace norma
