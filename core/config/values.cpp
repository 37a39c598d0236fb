// The types without structure: numbers, names, lists, and what may be absent.
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/type.h"

namespace norma::config::detail {
namespace {

// "; write ..." where the value is the right one in the wrong clothes.
std::string clothes_hint(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const Json inner = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (inner.is_number() || inner.is_boolean()) return "; write it without quotes";
  }
  return {};
}

// Reports a number outside of the limits; true iff it is inside.
bool check_range(double x, const Json& value, const std::string& path, const Limits& limits,
                 Problems& problems) {
  const bool low = limits.low_open ? x > limits.low : x >= limits.low;
  const bool high = limits.high_open ? x < limits.high : x <= limits.high;
  if (low && high) return true;
  problems.add(path, "must be {}; got {}", range_text(limits), shown(value));
  return false;
}

void schema_range(Json& into, const Limits& limits) {
  const auto number = [](double x) {
    return x == std::floor(x) && std::abs(x) < 0x1p53 ? Json(static_cast<std::int64_t>(x))
                                                      : Json(x);
  };
  if (std::isfinite(limits.low)) {
    into[limits.low_open ? "exclusiveMinimum" : "minimum"] = number(limits.low);
  }
  if (std::isfinite(limits.high)) {
    into[limits.high_open ? "exclusiveMaximum" : "maximum"] = number(limits.high);
  }
}

class BoolType final : public Type {
 public:
  void read(const Json& value, void* target, const std::string& path, const Limits&,
            Problems& problems) const override {
    if (!value.is_boolean()) {
      problems.add(path, "expected true or false; got {}{}", shown(value), clothes_hint(value));
      return;
    }
    *static_cast<bool*>(target) = value.get<bool>();
  }
  Json write(const void* source) const override { return *static_cast<const bool*>(source); }
  Json schema(SchemaParts&, const Limits&) const override { return Json{{"type", "boolean"}}; }
  std::string expected() const override { return "true or false"; }
  bool takes(const Json& value) const override { return value.is_boolean(); }
};

class IntegerType final : public Type {
 public:
  void read(const Json& value, void* target, const std::string& path, const Limits& limits,
            Problems& problems) const override {
    if (!value.is_number()) {
      problems.add(path, "expected an integer number; got {}{}", shown(value), clothes_hint(value));
      return;
    }
    std::int64_t out = 0;
    if (value.is_number_float()) {
      // 1e4 is an integer too, as JSON Schema has it.
      const double x = value.get<double>();
      if (x != std::floor(x)) {
        problems.add(path, "expected an integer; got {}", shown(value));
        return;
      }
      if (std::abs(x) > 0x1p53) {
        problems.add(path, "too large for an integer written with a fraction or exponent; got {}",
                     shown(value));
        return;
      }
      out = static_cast<std::int64_t>(x);
    } else if (value.is_number_unsigned() &&
               value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      problems.add(path, "must be at most {}; got {}", INT64_MAX, shown(value));
      return;
    } else {
      out = value.get<std::int64_t>();
    }
    if (check_range(static_cast<double>(out), value, path, limits, problems)) {
      *static_cast<std::int64_t*>(target) = out;
    }
  }
  Json write(const void* source) const override {
    return *static_cast<const std::int64_t*>(source);
  }
  Json schema(SchemaParts&, const Limits& limits) const override {
    Json out = {{"type", "integer"}};
    schema_range(out, limits);
    return out;
  }
  std::string expected() const override { return "an integer"; }
  bool takes(const Json& value) const override { return value.is_number(); }
};

class NumberType final : public Type {
 public:
  void read(const Json& value, void* target, const std::string& path, const Limits& limits,
            Problems& problems) const override {
    if (!value.is_number()) {
      problems.add(path, "expected a number; got {}{}", shown(value), clothes_hint(value));
      return;
    }
    const double x = value.get<double>();
    if (check_range(x, value, path, limits, problems)) *static_cast<double*>(target) = x;
  }
  Json write(const void* source) const override {
    const double x = *static_cast<const double*>(source);
    require(std::isfinite(x), "config: a number must be finite to be written; got {}", x);
    return x;
  }
  Json schema(SchemaParts&, const Limits& limits) const override {
    Json out = {{"type", "number"}};
    schema_range(out, limits);
    return out;
  }
  std::string expected() const override { return "a number"; }
  bool takes(const Json& value) const override { return value.is_number(); }
};

class StringType final : public Type {
 public:
  void read(const Json& value, void* target, const std::string& path, const Limits& limits,
            Problems& problems) const override {
    if (!value.is_string()) {
      problems.add(path, "expected a string; got {}; write it in quotes", shown(value));
      return;
    }
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() < limits.fewest) {
      problems.add(path, "must not be empty; got \"\"");
      return;
    }
    *static_cast<std::string*>(target) = text;
  }
  Json write(const void* source) const override { return *static_cast<const std::string*>(source); }
  Json schema(SchemaParts&, const Limits& limits) const override {
    Json out = {{"type", "string"}};
    if (limits.fewest > 0) out["minLength"] = limits.fewest;
    return out;
  }
  std::string expected() const override { return "a string"; }
  bool takes(const Json& value) const override { return value.is_string(); }
};

}  // namespace

const Type& bool_type() {
  static const BoolType type;
  return type;
}
const Type& integer_type() {
  static const IntegerType type;
  return type;
}
const Type& number_type() {
  static const NumberType type;
  return type;
}
const Type& string_type() {
  static const StringType type;
  return type;
}

// --- Names. ------------------------------------------------------------------------------------
void EnumType::read(const Json& value, void* target, const std::string& path, const Limits&,
                    Problems& problems) const {
  if (!value.is_string()) {
    problems.add(path, "expected {}; got {}", expected(), shown(value));
    return;
  }
  const auto& text = value.get_ref<const std::string&>();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == text) {
      access_.set(target, i);
      return;
    }
  }
  problems.add(path, "unknown name {}{}", shown(value), name_hint(text, names_));
}

Json EnumType::write(const void* source) const { return names_.at(access_.get(source)); }

Json EnumType::schema(SchemaParts&, const Limits&) const { return Json{{"enum", names_}}; }

std::string EnumType::expected() const {
  return fmt::format("\"{}\"", fmt::join(names_, "\" or \""));
}

bool EnumType::takes(const Json& value) const { return value.is_string(); }

// --- What may be absent. -----------------------------------------------------------------------
void OptionalType::read(const Json& value, void* target, const std::string& path,
                        const Limits& limits, Problems& problems) const {
  if (value.is_null()) {
    access_.reset(target);
  } else if (!inner_().takes(value)) {
    problems.add(path, "expected {}; got {}{}", expected(), shown(value), clothes_hint(value));
  } else {
    inner_().read(value, access_.emplace(target), path, limits, problems);
  }
}

Json OptionalType::write(const void* source) const {
  const void* held = access_.held(source);
  return held ? inner_().write(held) : Json(nullptr);
}

Json OptionalType::schema(SchemaParts& parts, const Limits& limits) const {
  return Json{{"anyOf", Json::array({inner_().schema(parts, limits), Json{{"type", "null"}}})}};
}

std::string OptionalType::expected() const {
  // Behind a list, null would read as one of its elements.
  const bool list = inner_().takes(Json::array());
  return list ? "null or " + inner_().expected() : inner_().expected() + " or null";
}

bool OptionalType::takes(const Json& value) const {
  return value.is_null() || inner_().takes(value);
}

// --- Lists. ------------------------------------------------------------------------------------
void ListType::read(const Json& value, void* target, const std::string& path, const Limits& limits,
                    Problems& problems) const {
  if (!value.is_array()) {
    problems.add(path, "expected {}; got {}", expected(), shown(value));
    return;
  }
  if (fixed_ != 0 && value.size() != fixed_) {
    problems.add(path, "expected {} elements; got {}", fixed_, value.size());
    return;
  }
  if (value.size() < limits.fewest) {
    problems.add(path, "expected at least {} element{}; got {}", limits.fewest,
                 limits.fewest == 1 ? "" : "s", value.size());
    return;
  }
  Limits of_element = limits;
  of_element.fewest = 0;
  access_.resize(target, value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    inner_().read(value[i], access_.at(target, i), join(path, i), of_element, problems);
  }
}

Json ListType::write(const void* source) const {
  Json out = Json::array();
  for (std::size_t i = 0; i < access_.size(source); ++i) {
    out.push_back(inner_().write(access_.at(const_cast<void*>(source), i)));
  }
  return out;
}

Json ListType::schema(SchemaParts& parts, const Limits& limits) const {
  Limits of_element = limits;
  of_element.fewest = 0;
  Json out = {{"type", "array"}, {"items", inner_().schema(parts, of_element)}};
  if (fixed_ != 0 || limits.fewest > 0) out["minItems"] = fixed_ != 0 ? fixed_ : limits.fewest;
  if (fixed_ != 0) out["maxItems"] = fixed_;
  return out;
}

std::string ListType::expected() const {
  const std::string one = inner_().expected();
  return fixed_ != 0 ? fmt::format("a list of {}, each {}", fixed_, one)
                     : fmt::format("a list, each {}", one);
}

bool ListType::takes(const Json& value) const { return value.is_array(); }

// --- One kind or another. ----------------------------------------------------------------------
void AlternativesType::read(const Json& value, void* target, const std::string& path,
                            const Limits& limits, Problems& problems) const {
  for (const Alternative& a : alternatives_) {
    if (a.type().takes(value)) {
      a.type().read(value, a.emplace(target), path, limits, problems);
      return;
    }
  }
  problems.add(path, "expected {}; got {}{}", expected(), shown(value), clothes_hint(value));
}

Json AlternativesType::write(const void* source) const {
  return alternatives_[access_.index(source)].type().write(access_.held(source));
}

Json AlternativesType::schema(SchemaParts& parts, const Limits& limits) const {
  Json choices = Json::array();
  for (const Alternative& a : alternatives_) choices.push_back(a.type().schema(parts, limits));
  return Json{{"anyOf", std::move(choices)}};
}

std::string AlternativesType::expected() const {
  std::string out;
  for (const Alternative& a : alternatives_) {
    if (!out.empty()) out += " or ";
    out += a.type().expected();
  }
  return out;
}

bool AlternativesType::takes(const Json& value) const {
  for (const Alternative& a : alternatives_) {
    if (a.type().takes(value)) return true;
  }
  return false;
}

std::vector<const Type*> AlternativesType::parts() const {
  std::vector<const Type*> out;
  for (const Alternative& a : alternatives_) out.push_back(&a.type());
  return out;
}

}  // namespace norma::config::detail
