// Files: reading them whole or in parts, and writing them so that a reader sees the old or the new.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace norma {

// The whole content of a file. Throws Error with the path and the system's reason.
[[nodiscard]] std::string read_file(const std::string& path);

// A file open for reading at any place.
class InputFile {
 public:
  // Throws Error if the file cannot be opened, or is no regular file: a folder, a pipe (for which
  // opening would wait), a device.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  // Bytes of the file when it was opened.
  [[nodiscard]] std::int64_t size() const { return size_; }
  // Reads `bytes` bytes from `offset`. Throws Error if the file ends before, or cannot be read.
  void read_at(std::int64_t offset, void* destination, std::int64_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// Note [Atomic files]. A file is written beside its place under a temporary name, every write is
// checked, the bytes are forced to the disk, then one rename puts the file in its place, and the
// folder is forced to the disk as well. A crash, a full disk or a limit at any moment leaves the
// old file as it was, and no reader sees half a file. What is no regular file (a pipe, /dev/stdout)
// has no old content to keep and is written in place; a symbolic link keeps pointing where it did.
class AtomicFile {
 public:
  // Opens the temporary. Throws Error if it cannot be made.
  explicit AtomicFile(const std::string& path);
  // Removes the temporary unless commit() was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws Error if the system took less, for instance on a full disk.
  void write(const void* bytes, std::int64_t count);
  void write(std::string_view text) { write(text.data(), static_cast<std::int64_t>(text.size())); }
  // Puts the file in its place. Throws Error, and leaves the old file, if that fails.
  void commit();

 private:
  void flush();
  void write_through(const char* bytes, std::int64_t count);
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;       // where the file will stand, links resolved
  std::string temporary_;  // where it is written; empty for what is no regular file
  std::string buffer_;
  int descriptor_ = -1;
};

// A file that grows line by line: a log. What was appended is whole or not there.
class AppendFile {
 public:
  // Opens the file, or makes it. Throws Error.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends at once, so that a kill afterwards loses nothing. If the system took less, for instance
  // on a full disk, the file gets its old length back, and Error is thrown.
  void append(std::string_view text);
  // Forces it to the disk. Throws Error.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

// Writes `text` as the content of `path`. See Note [Atomic files].
void write_file(const std::string& path, std::string_view text);

// zlib's CRC-32, as 8 hexadecimal digits. One flipped bit always changes it.
[[nodiscard]] std::string checksum(std::string_view bytes);
// Of the file's content. Throws Error if it cannot be read.
[[nodiscard]] std::string checksum_of_file(const std::string& path);

// Forces a folder's list of names to the disk (after a file in it was renamed).
void sync_folder(const std::string& folder);

// A name beside `path` for a file or folder that is still being written; unlike any other of this
// process and of others. is_temporary() knows it, so that what a killed run left is passed over.
[[nodiscard]] std::string temporary_beside(const std::string& path);
// True iff the last part of `path` is a name that temporary_beside() makes.
[[nodiscard]] bool is_temporary(const std::string& path);

}  // namespace norma
