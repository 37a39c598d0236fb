#include "core/config/type.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace norma::config {
namespace {

// True iff other programs call the field so.
bool has_alias(const Field& f, std::string_view key) {
  std::string_view names = f.limits.alias ? f.limits.alias : "";
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == key) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

// Where the key, or a field that another program calls so, stands below a type: "optimizer.lr".
std::string find_below(const Type& type, std::string_view key, int levels) {
  if (const StructType* s = type.as_struct()) {
    for (const Field& f : s->fields()) {
      if (f.key == key || has_alias(f, key)) return std::string(f.key);
    }
    if (levels == 0) return {};
    for (const Field& f : s->fields()) {
      const std::string inner = find_below(f.type(), key, levels - 1);
      if (!inner.empty()) return join(f.key, inner);
    }
  } else if (const FamilyType* family = type.as_family()) {
    for (const auto& member : family->members()) {
      const std::string inner = find_below(FamilyType::structure(member), key, 0);
      if (!inner.empty()) return inner;
    }
  }
  return {};
}

// The family behind a field that may be absent, or a list; null if there is none.
const FamilyType* family_of(const Type& type) {
  if (const FamilyType* family = type.as_family()) return family;
  for (const Type* part : type.parts()) {
    if (const FamilyType* family = family_of(*part)) return family;
  }
  return nullptr;
}

// Where a value of that name may stand below a type: "model.position" for "rope".
std::string find_value(const Type& type, std::string_view name, int levels) {
  if (const StructType* s = type.as_struct()) {
    for (const Field& f : s->fields()) {
      const FamilyType* family = family_of(f.type());
      if (!family) continue;
      for (const std::string_view known : family->names()) {
        if (known == name) return std::string(f.key);
      }
    }
    if (levels == 0) return {};
    for (const Field& f : s->fields()) {
      const std::string inner = find_value(f.type(), name, levels - 1);
      if (!inner.empty()) return join(f.key, inner);
    }
  } else if (const FamilyType* family = type.as_family()) {
    for (const auto& member : family->members()) {
      const std::string inner = find_value(FamilyType::structure(member), name, 0);
      if (!inner.empty()) return inner;
    }
  }
  return {};
}

std::string known_key(std::string_view key) {
  return fmt::format("; the nearest known key is \"{}\"", key);
}

// What to say of a value of the key `at` that was taken for a key.
std::string as_value(std::string_view at, std::string_view value) {
  return fmt::format("it is a value: \"{}\": \"{}\"", at, value);
}

// What to say behind "unknown key". In this order: its name here, in this structure; the other
// members of its family that have it, unless a key here is near; the sections below that have it;
// those of the whole configuration; a mistyped key; a value that was taken for a key.
std::string unknown_key(const StructType& type, std::string_view key, const FamilyType* family,
                        std::string_view type_name, const Type* whole) {
  for (const Field& f : type.fields()) {
    if (has_alias(f, key)) return known_key(f.key);
  }
  std::vector<std::string_view> keys = type.keys();
  if (family) keys.insert(keys.begin(), "type");
  const bool mistyped = !nearest_name(key, keys).empty();
  if (family && !mistyped) {
    std::vector<std::string_view> others;
    for (const auto& member : family->members()) {
      if (FamilyType::structure(member).find(key)) others.push_back(member.type);
    }
    if (!others.empty()) {
      const std::string value = find_value(type, key, 1);
      return fmt::format(" of {} \"{}\"; {}it belongs to {}", family->name(), type_name,
                         value.empty() ? "" : as_value(value, key) + ", and as a key ",
                         fmt::join(others, ", "));
    }
  }
  if (const std::string below = find_below(type, key, 1); !below.empty()) return known_key(below);
  if (whole) {
    if (const std::string at = find_below(*whole, key, 1); !at.empty()) return known_key(at);
  }
  if (mistyped) return name_hint(key, keys);
  for (const Type* in : {static_cast<const Type*>(&type), whole}) {
    if (!in) continue;
    if (const std::string at = find_value(*in, key, 1); !at.empty()) {
      return "; " + as_value(at, key);
    }
  }
  return name_hint(key, keys);
}

}  // namespace

Limits operator&(Limits a, Limits b) {
  Limits out = a;
  if (b.low > a.low || (b.low == a.low && b.low_open)) {
    out.low = b.low;
    out.low_open = b.low_open;
  }
  if (b.high < a.high || (b.high == a.high && b.high_open)) {
    out.high = b.high;
    out.high_open = b.high_open;
  }
  out.fewest = std::max(a.fewest, b.fewest);
  out.required = a.required || b.required;
  if (b.alias) out.alias = b.alias;
  return out;
}

std::string range_text(const Limits& limits) {
  const auto number = [](double x) {
    return x == std::floor(x) && std::abs(x) < 1e15 ? fmt::format("{:.0f}", x)
                                                    : fmt::format("{}", x);
  };
  const bool low = std::isfinite(limits.low), high = std::isfinite(limits.high);
  if (low && high) {
    return fmt::format("in {}{}, {}{}", limits.low_open ? '(' : '[', number(limits.low),
                       number(limits.high), limits.high_open ? ')' : ']');
  }
  if (low) return (limits.low_open ? "above " : "at least ") + number(limits.low);
  if (high) return (limits.high_open ? "below " : "at most ") + number(limits.high);
  return {};
}

Fields operator+(Fields base, Fields more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

// --- Structures. -------------------------------------------------------------------------------
StructType::StructType(Fields fields, Access access)
    : fields_(std::move(fields)), access_(access) {}

std::vector<std::string_view> StructType::keys() const {
  std::vector<std::string_view> out;
  for (const Field& f : fields_) out.push_back(f.key);
  return out;
}

const Field* StructType::find(std::string_view key) const {
  const auto at =
      std::find_if(fields_.begin(), fields_.end(), [&](const Field& f) { return f.key == key; });
  return at == fields_.end() ? nullptr : &*at;
}

void StructType::read_members(const Json& value, void* target, const std::string& path,
                              Problems& problems, const FamilyType* family,
                              std::string_view type_name) const {
  const std::size_t before = problems.size();
  access_.reset(target);
  for (const auto& [key, member] : value.items()) {
    if (family && key == "type") continue;
    if (path.empty() && key == "$schema") continue;
    if (const Field* f = find(key)) {
      f->type().read(member, f->member(target), join(path, key), f->limits, problems);
    } else {
      problems.add(join(path, key), "unknown key{}",
                   unknown_key(*this, key, family, type_name, problems.whole()));
    }
  }
  for (const Field& f : fields_) {
    if (f.limits.required && !value.contains(f.key)) {
      problems.add(join(path, f.key), "missing; expected {}", f.type().expected());
    }
  }
  if (problems.size() == before) access_.check(target, problems, path);
}

void StructType::write_members(const void* source, Json& into) const {
  for (const Field& f : fields_) into[std::string(f.key)] = f.type().write(f.member(source));
}

void StructType::schema_members(Json& into, SchemaParts& parts) const {
  Json& properties = into["properties"];
  if (properties.is_null()) properties = Json::object();
  Json needed = into.contains("required") ? into["required"] : Json::array();
  for (const Field& f : fields_) {
    Json one = f.type().schema(parts, f.limits);
    one["description"] = f.doc;
    if (f.limits.required) {
      needed.push_back(f.key);
    } else {
      one["default"] = f.type().write(f.member(access_.defaults()));
    }
    properties[std::string(f.key)] = std::move(one);
  }
  if (!needed.empty()) into["required"] = std::move(needed);
  into["additionalProperties"] = false;
}

void StructType::read(const Json& value, void* target, const std::string& path, const Limits&,
                      Problems& problems) const {
  if (!value.is_object()) {
    problems.add(path, "expected an object; got {}", shown(value));
    return;
  }
  read_members(value, target, path, problems, nullptr, {});
}

Json StructType::write(const void* source) const {
  Json out = Json::object();
  write_members(source, out);
  return out;
}

Json StructType::schema(SchemaParts& parts, const Limits&) const {
  Json out = {{"type", "object"}};
  schema_members(out, parts);
  return out;
}

bool StructType::takes(const Json& value) const { return value.is_object(); }

// --- Families. ---------------------------------------------------------------------------------
FamilyType::FamilyType(std::string_view name, std::string_view doc, std::vector<Member> members,
                       Access access)
    : name_(name), doc_(doc), members_(std::move(members)), access_(access) {}

std::vector<std::string_view> FamilyType::names() const {
  std::vector<std::string_view> out;
  for (const Member& m : members_) out.push_back(m.type);
  return out;
}

const StructType& FamilyType::structure(const Member& member) {
  return *member.description().as_struct();
}

void FamilyType::read(const Json& value, void* target, const std::string& path, const Limits&,
                      Problems& problems) const {
  const std::string type_path = join(path, "type");
  const Json* name = &value;
  if (value.is_object()) {
    const auto at = value.find("type");
    if (at == value.end()) {
      problems.add(type_path, "missing; known: {}", fmt::join(names(), ", "));
      return;
    }
    name = &*at;
    if (!name->is_string()) {
      problems.add(type_path, "expected the name of a type; got {}; known: {}", shown(*name),
                   fmt::join(names(), ", "));
      return;
    }
  } else if (!value.is_string()) {
    problems.add(path, "expected {}; got {}", expected(), shown(value));
    return;
  }
  const std::string& type_name = name->get_ref<const std::string&>();
  for (const Member& m : members_) {
    if (m.type != type_name) continue;
    static const Json nothing = Json::object();
    structure(m).read_members(value.is_object() ? value : nothing, m.emplace(target), path,
                              problems, this, m.type);
    return;
  }
  problems.add(type_path, "unknown type {}{}", shown(*name), name_hint(type_name, names()));
}

Json FamilyType::write(const void* source) const {
  const Member& m = members_[access_.index(source)];
  Json out = {{"type", m.type}};
  structure(m).write_members(access_.held(source), out);
  return out;
}

Json FamilyType::schema(SchemaParts& parts, const Limits&) const {
  const std::string key(name_);
  if (!parts.definitions.contains(key)) {
    parts.definitions[key] = nullptr;  // holds the place, since a family may contain itself
    Json short_names = Json::array();
    Json choices = Json::array();
    for (const Member& m : members_) {
      Json one = {{"type", "object"}, {"title", m.type}, {"description", m.doc}};
      one["properties"] = Json{{"type", Json{{"const", m.type}}}};
      one["required"] = Json::array({"type"});
      structure(m).schema_members(one, parts);
      if (one["required"].size() == 1) short_names.push_back(m.type);
      choices.push_back(std::move(one));
    }
    if (!short_names.empty()) {
      choices.insert(choices.begin(), Json{{"enum", std::move(short_names)}});
    }
    parts.definitions[key] = Json{{"description", doc_}, {"oneOf", std::move(choices)}};
  }
  return Json{{"$ref", "#/$defs/" + key}};
}

std::string FamilyType::expected() const {
  return fmt::format("a type of {} (a name, or an object)", name_);
}

bool FamilyType::takes(const Json& value) const { return value.is_string() || value.is_object(); }

}  // namespace norma::config
