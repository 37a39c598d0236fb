#include "core/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "core/autograd.h"
#include "core/file.h"

namespace norma {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little,
              "safetensors stores little-endian values");

constexpr std::int64_t kPrefixBytes = 8;
// The reference implementation reads no longer header.
constexpr std::int64_t kMaxHeaderBytes = 100'000'000;
constexpr const char* kMetadataKey = "__metadata__";

struct FileType {
  const char* name;
  int bytes;
  std::optional<DType> dtype;
};
constexpr FileType kFileTypes[] = {
    {"F64", 8, DType::f64},       {"F32", 4, DType::f32},       {"F16", 2, DType::f16},
    {"BF16", 2, DType::bf16},     {"I64", 8, DType::i64},       {"I32", 4, DType::i32},
    {"U8", 1, DType::u8},         {"I16", 2, std::nullopt},     {"I8", 1, std::nullopt},
    {"U64", 8, std::nullopt},     {"U32", 4, std::nullopt},     {"U16", 2, std::nullopt},
    {"BOOL", 1, std::nullopt},    {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt},
    {"F8_E8M0", 1, std::nullopt}, {"C64", 8, std::nullopt}};

const char* file_type_name(DType dtype) {
  for (const FileType& type : kFileTypes) {
    if (type.dtype == dtype) return type.name;
  }
  throw Error::format("safetensors: {} has no name in the format", name_of(dtype));
}

// What the file is, where its first bytes tell.
std::string hint(const std::string& first_bytes) {
  const auto starts = [&](const char* text) { return first_bytes.rfind(text, 0) == 0; };
  if (starts("PK\x03\x04")) {
    return "it is a zip file (perhaps a PyTorch .pt checkpoint: save it with "
           "safetensors.torch.save_file)";
  }
  if (starts("version ht"))
    return "it is a git-lfs pointer: fetch the file itself with git lfs pull";
  if (starts("<!") || starts("<html") || starts("<HTML")) return "it is a web page: download again";
  return "it was cut short, or is no safetensors file";
}

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  throw Error::format("{}: {}", path, problem);
}

// Parses the header, refusing a key that stands twice: the finished object has lost the first.
json parse_json(const std::string& path, const std::string& header) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > 8) refuse(path, "header: nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      refuse(path, fmt::format("header: the name {} stands twice", value.dump()));
    }
    return true;
  };
  try {
    return json::parse(header, watch);
  } catch (const json::exception& e) {
    refuse(path, fmt::format("header: not valid JSON: {}", e.what()));
  }
}

// A number that is a whole one, not negative, and fits in 63 bits.
std::int64_t whole_number(const json& value, const std::string& path, const std::string& what) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT64_MAX) {
    refuse(path, fmt::format("{}: expected a whole number from 0; got {}", what, value.dump()));
  }
  return value.get<std::int64_t>();
}

std::string quoted(const std::string& name) {
  return json(name).dump(-1, ' ', false, json::error_handler_t::replace);
}

SafetensorsFile::Entry parse_entry(const std::string& path, const std::string& name,
                                   const json& value) {
  const std::string what = fmt::format("header: tensor {}", quoted(name));
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets") || !value["dtype"].is_string() ||
      !value["shape"].is_array() || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2) {
    refuse(path,
           fmt::format("{}: expected {{\"dtype\", \"shape\", \"data_offsets\": [begin, end]}}; "
                       "got {}",
                       what, value.dump().substr(0, 200)));
  }
  SafetensorsFile::Entry entry;
  entry.name = name;
  entry.dtype_name = value["dtype"].get<std::string>();
  const FileType* type =
      std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                   [&](const FileType& t) { return entry.dtype_name == t.name; });
  if (type == std::end(kFileTypes)) {
    refuse(path, fmt::format("{}: unknown dtype {}", what, value["dtype"].dump()));
  }
  entry.dtype = type->dtype;
  if (value["shape"].size() > static_cast<std::size_t>(kMaxRank)) {
    refuse(path, fmt::format("{}: expected at most {} axes; got {}", what, kMaxRank,
                             value["shape"].size()));
  }
  bool overflow = false, empty = false;
  std::int64_t bytes = type->bytes;
  for (const json& axis : value["shape"]) {
    const std::int64_t size = whole_number(axis, path, what + ": shape");
    entry.shape.push_back(size);
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (overflow && !empty) refuse(path, what + ": shape: too large");
  if (empty) bytes = 0;
  entry.begin = whole_number(value["data_offsets"][0], path, what + ": data_offsets");
  entry.end = whole_number(value["data_offsets"][1], path, what + ": data_offsets");
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    refuse(path,
           fmt::format("{}: {} {} takes {} bytes; its data_offsets are [{}, {}]", what,
                       entry.dtype_name, entry.shape.to_string(), bytes, entry.begin, entry.end));
  }
  return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(std::make_unique<InputFile>(path)) {
  const std::int64_t file_bytes = file_->size();
  std::string first(static_cast<std::size_t>(std::min<std::int64_t>(file_bytes, 10)), '\0');
  file_->read_at(0, first.data(), static_cast<std::int64_t>(first.size()));
  if (file_bytes < kPrefixBytes) {
    refuse(path, fmt::format("expected a safetensors file, with the header's length in the first 8 "
                             "bytes; got {} bytes; {}",
                             file_bytes, hint(first)));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, first.data(), kPrefixBytes);
  const auto left = static_cast<std::uint64_t>(file_bytes - kPrefixBytes);
  if (header_bytes > left || header_bytes > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
    refuse(path,
           fmt::format("the header's length is given as {} bytes; {}; {}", header_bytes,
                       header_bytes > left ? fmt::format("the file has {} after it", left)
                                           : fmt::format("at most {} are allowed", kMaxHeaderBytes),
                       hint(first)));
  }
  std::string header(header_bytes, '\0');
  file_->read_at(kPrefixBytes, header.data(), static_cast<std::int64_t>(header_bytes));
  if (header.empty() || header.front() != '{') {
    refuse(path, fmt::format("the header must be a JSON object; {}", hint(first)));
  }
  data_start_ = kPrefixBytes + static_cast<std::int64_t>(header_bytes);
  parse_header(header, file_bytes - data_start_);
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

const std::string& SafetensorsFile::path() const { return file_->path(); }

void SafetensorsFile::parse_header(const std::string& header, std::int64_t data_bytes) {
  const json object = parse_json(path(), header);
  for (const auto& [name, value] : object.items()) {
    if (name != kMetadataKey) {
      entries_.push_back(parse_entry(path(), name, value));
      continue;
    }
    if (!value.is_object()) refuse(path(), "header: __metadata__ must be an object of strings");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) {
        refuse(path(), fmt::format("header: __metadata__.{} must be a string; got {}", key,
                                   text.dump().substr(0, 200)));
      }
      metadata_[key] = text.get<std::string>();
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
  check_layout(data_bytes);
}

void SafetensorsFile::check_layout(std::int64_t data_bytes) const {
  std::int64_t at = 0;
  const Entry* before = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.begin < at) {
      refuse(path(), fmt::format("tensors {} (bytes {} to {}) and {} (bytes {} to {}) overlap",
                                 quoted(before->name), before->begin, before->end,
                                 quoted(entry.name), entry.begin, entry.end));
    }
    if (entry.begin > at) {
      refuse(path(), fmt::format("bytes {} to {} belong to no tensor", at, entry.begin));
    }
    at = entry.end;
    before = &entry;
  }
  if (at > data_bytes) {
    refuse(path(),
           fmt::format("expected {} bytes of tensors after the header; got {}; the file was "
                       "cut short: copy or download it again",
                       at, data_bytes));
  }
  if (at < data_bytes) {
    refuse(path(), fmt::format("expected {} bytes of tensors after the header; got {}; the last {} "
                               "belong to no tensor",
                               at, data_bytes, data_bytes - at));
  }
}

const SafetensorsFile::Entry* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

Tensor SafetensorsFile::read(const std::string& name) const {
  const Entry* entry = find(name);
  require(entry != nullptr, "{}: expected a tensor {}; the file has none of that name", path(),
          quoted(name));
  require(
      entry->dtype.has_value(),
      "{}: tensor {}: expected one of F64, F32, F16, BF16, I64, I32, U8; got {}; convert it first",
      path(), quoted(name), entry->dtype_name);
  Tensor values = Tensor::empty(entry->shape, *entry->dtype);
  if (entry->end > entry->begin) {
    file_->read_at(data_start_ + entry->begin, values.mutable_raw(), entry->end - entry->begin);
  }
  return values;
}

void write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                       const Metadata& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  for (const NamedTensor* t : order) {
    require(t->tensor.defined(), "write_safetensors: tensor {} is undefined", quoted(t->name));
    require(t->name != kMetadataKey, "write_safetensors: a tensor cannot have the name {}",
            kMetadataKey);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const auto key = [](const NamedTensor* t) { return -size_of(t->tensor.dtype()); };
    return std::pair(key(a), std::cref(a->name).get()) <
           std::pair(key(b), std::cref(b->name).get());
  });
  json header = json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  std::int64_t at = 0;
  for (const NamedTensor* t : order) {
    const auto& [name, tensor] = *t;
    require(!header.contains(name), "write_safetensors: the name {} stands twice", quoted(name));
    const std::int64_t end = at + tensor.numel() * size_of(tensor.dtype());
    header[name] = {
        {"dtype", file_type_name(tensor.dtype())},
        {"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())},
        {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& e) {
    refuse(path, fmt::format("names and metadata must be UTF-8: {}", e.what()));
  }
  // Spaces behind the header align the first tensor.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  require(static_cast<std::int64_t>(text.size()) <= kMaxHeaderBytes,
          "{}: the header would take {} bytes; at most {} can be read again; store long metadata "
          "elsewhere",
          path, text.size(), kMaxHeaderBytes);

  AtomicFile file(path);
  const std::uint64_t header_bytes = text.size();
  file.write(&header_bytes, kPrefixBytes);
  file.write(text);
  for (const NamedTensor* t : order) {
    const Tensor& tensor = t->tensor;
    const std::int64_t bytes = tensor.numel() * size_of(tensor.dtype());
    if (bytes > 0) file.write(tensor.raw(), bytes);
  }
  file.commit();
}

LoadReport load_safetensors(const SafetensorsFile& file, std::span<const NamedTensor> targets,
                            LoadOptions options) {
  LoadReport report;
  std::vector<std::string> unfit;
  std::set<std::string> wanted;
  for (const auto& [name, target] : targets) {
    require(wanted.insert(name).second, "load_safetensors: the name {} stands twice", quoted(name));
    const SafetensorsFile::Entry* entry = file.find(name);
    if (entry == nullptr) {
      report.missing.push_back(name);
    } else if (!(entry->shape == target.shape())) {
      unfit.push_back(fmt::format("{}: expected shape {}; got {}", name, target.shape().to_string(),
                                  entry->shape.to_string()));
    } else if (entry->dtype != target.dtype() &&
               !(options.convert && entry->dtype &&
                 is_floating(*entry->dtype) == is_floating(target.dtype()))) {
      unfit.push_back(fmt::format("{}: expected {}; got {}", name, file_type_name(target.dtype()),
                                  entry->dtype_name));
    }
  }
  for (const SafetensorsFile::Entry& entry : file.entries()) {
    if (!wanted.contains(entry.name)) report.extra.push_back(entry.name);
  }
  std::string problems;
  for (const std::string& text : unfit) problems += "\n  " + text;
  if (options.strict) {
    for (const std::string& name : report.missing) problems += "\n  " + name + ": not in the file";
    for (const std::string& name : report.extra) {
      problems += "\n  " + name + ": in the file, but not asked for";
    }
  }
  require(problems.empty(), "{}: the tensors do not fit:{}", file.path(), problems);

  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, target] : targets) {
    if (file.find(name) != nullptr) copies.emplace_back(target, file.read(name));
  }
  const NoGrad no_grad;
  for (auto& [target, values] : copies) target.copy_(values);
  return report;
}

}  // namespace norma
