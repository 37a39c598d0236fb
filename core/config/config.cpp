#include "core/config/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace norma::config {
namespace {

void collect(const Type& type, std::vector<const FamilyType*>& out) {
  for (const Type* part : type.parts()) collect(*part, out);
  if (const StructType* s = type.as_struct()) {
    for (const Field& f : s->fields()) collect(f.type(), out);
  }
  const FamilyType* family = type.as_family();
  if (!family || std::find(out.begin(), out.end(), family) != out.end()) return;
  out.push_back(family);
  for (const auto& member : family->members()) collect(*member.description().as_struct(), out);
}

// A cell of a table: its bars would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// The structure behind a field, or behind the elements of its list; null if there is none.
const StructType* structure_of(const Type& type) {
  if (const StructType* s = type.as_struct()) return s;
  for (const Type* part : type.parts()) {
    if (const StructType* s = structure_of(*part)) return s;
  }
  return nullptr;
}

std::string default_of(const StructType& type, const Field& f) {
  if (f.limits.required) return "must be given";
  const Json value = f.type().write(f.member(type.defaults()));
  // Of a family, the name is enough.
  return fmt::format("`{}`", f.type().as_family() ? value["type"].dump() : value.dump());
}

// A row a field; those of inner structures follow, unless they have a section of their own.
std::string rows(const StructType& type, const std::string& prefix, bool with_inner) {
  std::string out;
  for (const Field& f : type.fields()) {
    const std::string key = prefix + std::string(f.key);
    const StructType* inner = structure_of(f.type());
    std::string standard = inner && !with_inner ? "see below" : default_of(type, f);
    if (inner && !with_inner && f.limits.required) standard = "must be given; see below";
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", key, cell(f.type().expected()),
                       cell(standard), range_text(f.limits), cell(f.doc));
    const char* below = f.type().takes(Json::array()) ? "[]." : ".";
    if (inner && with_inner) out += rows(*inner, key + below, true);
  }
  return out;
}

std::string table(const StructType& type, bool with_inner = true) {
  if (type.fields().empty()) return "No keys.\n";
  return "| key | type | default | range | meaning |\n|---|---|---|---|---|\n" +
         rows(type, "", with_inner);
}

}  // namespace

void read(const Type& type, const Json& json, void* target, const std::string& path,
          std::string_view source) {
  Problems problems(type);
  type.read(json, target, path, {}, problems);
  problems.raise(source);
}

Json schema(const Type& type, std::string_view title) {
  Json definitions = Json::object();
  SchemaParts parts{definitions};
  Json body = type.schema(parts, {});
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  for (auto& [key, value] : body.items()) out[key] = value;
  if (type.as_struct()) {
    out["properties"]["$schema"] = Json{{"type", "string"}};
    out["properties"]["extends"] =
        Json{{"type", "string"},
             {"description", "A file, relative to this one, that this one changes."}};
    // What must be given may stand in the file that is extended.
    if (out.contains("required")) {
      out["anyOf"] = Json::array(
          {Json{{"required", Json::array({"extends"})}}, Json{{"required", out["required"]}}});
      out.erase("required");
    }
  }
  out["$defs"] = std::move(definitions);
  return out;
}

std::string markdown(const Type& type, std::string_view title) {
  std::string out = fmt::format("# {}\n", title);
  if (const StructType* s = type.as_struct()) {
    out += "\n" + table(*s, /*with_inner=*/false);
    for (const Field& f : s->fields()) {
      if (const StructType* inner = f.type().as_struct()) {
        out += fmt::format("\n## `{}`\n\n{}\n\n{}", f.key, f.doc, table(*inner));
      }
    }
  }
  // A structure that is a member of several families is described once.
  std::vector<const Type*> described;
  for (const FamilyType* family : families(type)) {
    out += fmt::format("\n## {}\n\n{}\n", family->name(), family->doc());
    std::string elsewhere;
    for (const auto& member : family->members()) {
      const Type* description = &member.description();
      if (std::find(described.begin(), described.end(), description) != described.end()) {
        elsewhere += fmt::format("{}`{}`", elsewhere.empty() ? "" : ", ", member.type);
        continue;
      }
      described.push_back(description);
      out += fmt::format("\n### `{}`\n\n{} Source: {}.\n\n{}", member.type, member.doc,
                         member.source, table(*description->as_struct()));
    }
    if (!elsewhere.empty()) out += fmt::format("\nAs described above: {}.\n", elsewhere);
  }
  return out;
}

std::vector<const FamilyType*> families(const Type& type) {
  std::vector<const FamilyType*> out;
  collect(type, out);
  return out;
}

}  // namespace norma::config
