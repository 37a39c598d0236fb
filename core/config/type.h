// The types that configurations are made of, seen at run time: how to read one from JSON, write it,
// and describe it. `type_of<T>()` gives the description of a C++ type; readers use config.h.
//
// Note [Erased types]. The templates here only say where a member stands and how to reset it; all
// reading, writing, schema and documentation is plain code over these descriptions. That keeps the
// headers light and the number of instantiations small.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/json.h"
#include "core/config/problems.h"

namespace norma::config {

class Type;
class StructType;
class FamilyType;
// Descriptions refer to each other through functions, so that types may contain themselves.
using TypeRef = const Type& (*)();

template <class T>
[[nodiscard]] const Type& type_of();

// What a field allows beyond its type. Numbers: of the value, or of each element of a list.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;        // low itself is refused
  bool high_open = false;       // high itself is refused
  std::size_t fewest = 0;       // elements of a list, letters of a string
  bool required = false;        // the field has no default
  const char* alias = nullptr;  // names from elsewhere, with spaces between
};

// --- Limits, as they stand in fields(). --------------------------------------------------------
[[nodiscard]] inline Limits at_least(double low) { return {.low = low}; }
[[nodiscard]] inline Limits at_most(double high) { return {.high = high}; }
[[nodiscard]] inline Limits above(double low) { return {.low = low, .low_open = true}; }
[[nodiscard]] inline Limits below(double high) { return {.high = high, .high_open = true}; }
[[nodiscard]] inline Limits between(double low, double high) { return {.low = low, .high = high}; }
[[nodiscard]] inline Limits not_empty() { return {.fewest = 1}; }
// The field must be given: its default only says what the empty structure holds.
[[nodiscard]] inline Limits required() { return {.required = true}; }
// Other programs' names for the key, with spaces between ("learning_rate step_size"). They are
// refused, with a pointer to the key.
[[nodiscard]] inline Limits also_called(const char* names) { return {.alias = names}; }
// All of both.
[[nodiscard]] Limits operator&(Limits a, Limits b);
// "in (0, 1]", ">= 1"; empty without a range.
[[nodiscard]] std::string range_text(const Limits& limits);

// Collects the shared parts of a JSON Schema.
struct SchemaParts {
  Json& definitions;  // by name, under "$defs"
};

// --- The description of a type. ----------------------------------------------------------------
class Type {
 public:
  virtual ~Type() = default;
  // Reads `value` into the object at `target`. What is wrong goes to `problems`; the target then
  // holds something valid, but nothing in particular.
  virtual void read(const Json& value, void* target, const std::string& path, const Limits& limits,
                    Problems& problems) const = 0;
  [[nodiscard]] virtual Json write(const void* source) const = 0;
  [[nodiscard]] virtual Json schema(SchemaParts& parts, const Limits& limits) const = 0;
  // "a number", for messages and documentation.
  [[nodiscard]] virtual std::string expected() const = 0;
  // True iff the JSON value is of a kind that this type reads.
  [[nodiscard]] virtual bool takes(const Json& value) const = 0;
  // The types of the elements or alternatives.
  [[nodiscard]] virtual std::vector<const Type*> parts() const { return {}; }
  [[nodiscard]] virtual const StructType* as_struct() const { return nullptr; }
  [[nodiscard]] virtual const FamilyType* as_family() const { return nullptr; }
};

// One field of a structure.
struct Field {
  std::string_view key;
  std::string_view doc;  // one sentence
  TypeRef type;
  Limits limits;
  // Where the member stands in an object; `place` holds the pointer to member.
  void* (*resolve)(void* object, const std::byte* place);
  std::array<std::byte, 16> place;

  [[nodiscard]] void* member(void* object) const { return resolve(object, place.data()); }
  [[nodiscard]] const void* member(const void* object) const {
    return resolve(const_cast<void*>(object), place.data());
  }
};

// What `static Fields fields()` of a configuration structure returns.
using Fields = std::vector<Field>;

// A field: JSON key, member, a sentence, and its limits. A member of a base structure is allowed
// where the base is the first one.
template <class T, class M, class... L>
[[nodiscard]] Field field(std::string_view key, M T::*member, std::string_view doc, L... limits) {
  Field f{key, doc, &type_of<M>, (Limits{} & ... & limits), nullptr, {}};
  static_assert(sizeof(member) <= sizeof(f.place));
  std::memcpy(f.place.data(), &member, sizeof(member));
  f.resolve = [](void* object, const std::byte* place) -> void* {
    M T::*at;
    std::memcpy(&at, place, sizeof(at));
    return &(static_cast<T*>(object)->*at);
  };
  return f;
}

// Fields of a base structure followed by further ones.
[[nodiscard]] Fields operator+(Fields base, Fields more);

// --- Structures and families. ------------------------------------------------------------------
class StructType final : public Type {
 public:
  struct Access {
    const void* (*defaults)();
    void (*reset)(void* object);
    void (*check)(const void* object, Problems& problems, const std::string& path);
  };
  StructType(Fields fields, Access access);

  [[nodiscard]] const Fields& fields() const { return fields_; }
  [[nodiscard]] const void* defaults() const { return access_.defaults(); }
  [[nodiscard]] std::vector<std::string_view> keys() const;
  [[nodiscard]] const Field* find(std::string_view key) const;
  // Reads the members and runs the structure's own check. As a member of `family`, "type" is not a
  // field of it.
  void read_members(const Json& value, void* target, const std::string& path, Problems& problems,
                    const FamilyType* family, std::string_view type_name) const;
  void write_members(const void* source, Json& into) const;
  // The schema's "properties", "required", "additionalProperties".
  void schema_members(Json& into, SchemaParts& parts) const;

  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override { return "an object"; }
  bool takes(const Json& value) const override;
  const StructType* as_struct() const override { return this; }

 private:
  Fields fields_;
  Access access_;
};

// One of several structures, told apart by `type`: see OneOf.
class FamilyType final : public Type {
 public:
  struct Member {
    std::string_view type, doc, source;
    TypeRef description;             // a StructType
    void* (*emplace)(void* one_of);  // makes it the one that is held; returns it
  };
  struct Access {
    std::size_t (*index)(const void* one_of);
    const void* (*held)(const void* one_of);
  };
  FamilyType(std::string_view name, std::string_view doc, std::vector<Member> members,
             Access access);

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::string_view doc() const { return doc_; }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] std::vector<std::string_view> names() const;
  [[nodiscard]] static const StructType& structure(const Member& member);

  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override;
  bool takes(const Json& value) const override;
  const FamilyType* as_family() const override { return this; }

 private:
  std::string_view name_, doc_;
  std::vector<Member> members_;
  Access access_;
};

// --- Values. -----------------------------------------------------------------------------------
namespace detail {

[[nodiscard]] const Type& bool_type();
[[nodiscard]] const Type& integer_type();
[[nodiscard]] const Type& number_type();
[[nodiscard]] const Type& string_type();

class EnumType final : public Type {
 public:
  struct Access {
    std::size_t (*get)(const void*);
    void (*set)(void*, std::size_t);
  };
  EnumType(std::vector<std::string_view> names, Access access)
      : names_(std::move(names)), access_(access) {}
  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override;
  bool takes(const Json& value) const override;

 private:
  std::vector<std::string_view> names_;
  Access access_;
};

class OptionalType final : public Type {
 public:
  struct Access {
    const void* (*held)(const void*);  // null where empty
    void* (*emplace)(void*);
    void (*reset)(void*);
  };
  OptionalType(TypeRef inner, Access access) : inner_(inner), access_(access) {}
  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override;
  bool takes(const Json& value) const override;
  std::vector<const Type*> parts() const override { return {&inner_()}; }

 private:
  TypeRef inner_;
  Access access_;
};

// std::vector, and std::array where `fixed` is not 0.
class ListType final : public Type {
 public:
  struct Access {
    std::size_t (*size)(const void*);
    void (*resize)(void*, std::size_t);  // all elements anew
    void* (*at)(void*, std::size_t);
  };
  ListType(TypeRef inner, std::size_t fixed, Access access)
      : inner_(inner), fixed_(fixed), access_(access) {}
  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override;
  bool takes(const Json& value) const override;
  std::vector<const Type*> parts() const override { return {&inner_()}; }

 private:
  TypeRef inner_;
  std::size_t fixed_;
  Access access_;
};

// std::variant of values of different JSON kinds: the first that takes the value reads it.
class AlternativesType final : public Type {
 public:
  struct Alternative {
    TypeRef type;
    void* (*emplace)(void*);
  };
  struct Access {
    std::size_t (*index)(const void*);
    const void* (*held)(const void*);
  };
  AlternativesType(std::vector<Alternative> alternatives, Access access)
      : alternatives_(std::move(alternatives)), access_(access) {}
  void read(const Json&, void*, const std::string&, const Limits&, Problems&) const override;
  Json write(const void* source) const override;
  Json schema(SchemaParts& parts, const Limits& limits) const override;
  std::string expected() const override;
  bool takes(const Json& value) const override;
  std::vector<const Type*> parts() const override;

 private:
  std::vector<Alternative> alternatives_;
  Access access_;
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <class T>
struct IsVariant : std::false_type {};
template <class... T>
struct IsVariant<std::variant<T...>> : std::true_type {};

template <class T>
concept HasCheck = requires(const T& t, Problems& p, const std::string& path) {
  t.check(p, path);
};

template <class V, std::size_t... I>
AlternativesType make_alternatives(std::index_sequence<I...>) {
  return AlternativesType(
      {{&type_of<std::variant_alternative_t<I, V>>,
        [](void* v) -> void* { return &static_cast<V*>(v)->template emplace<I>(); }}...},
      {[](const void* v) { return static_cast<const V*>(v)->index(); },
       [](const void* v) -> const void* {
         return std::visit([](const auto& held) -> const void* { return &held; },
                           *static_cast<const V*>(v));
       }});
}

// The description of T, made once.
template <class T>
auto make_type() {
  if constexpr (std::is_enum_v<T>) {
    const auto names = config_names(T{});
    return EnumType(
        {names.begin(), names.end()},
        {[](const void* p) { return static_cast<std::size_t>(*static_cast<const T*>(p)); },
         [](void* p, std::size_t i) { *static_cast<T*>(p) = static_cast<T>(i); }});
  } else if constexpr (IsOptional<T>::value) {
    return OptionalType(&type_of<typename T::value_type>,
                        {[](const void* p) -> const void* {
                           const T& o = *static_cast<const T*>(p);
                           return o ? &*o : nullptr;
                         },
                         [](void* p) -> void* { return &static_cast<T*>(p)->emplace(); },
                         [](void* p) { static_cast<T*>(p)->reset(); }});
  } else if constexpr (IsVector<T>::value) {
    static_assert(!std::is_same_v<T, std::vector<bool>>, "a list of bool has no addresses");
    return ListType(&type_of<typename T::value_type>, 0,
                    {[](const void* p) { return static_cast<const T*>(p)->size(); },
                     [](void* p, std::size_t n) { *static_cast<T*>(p) = T(n); },
                     [](void* p, std::size_t i) -> void* { return &(*static_cast<T*>(p))[i]; }});
  } else if constexpr (IsArray<T>::value) {
    return ListType(&type_of<typename T::value_type>, std::tuple_size_v<T>,
                    {[](const void*) { return std::tuple_size_v<T>; },
                     [](void* p, std::size_t) { *static_cast<T*>(p) = T{}; },
                     [](void* p, std::size_t i) -> void* { return &(*static_cast<T*>(p))[i]; }});
  } else if constexpr (IsVariant<T>::value) {
    return make_alternatives<T>(std::make_index_sequence<std::variant_size_v<T>>());
  } else if constexpr (requires { T::kIsFamily; }) {
    return T::template family_type<T>();
  } else {
    return StructType(T::fields(), {[]() -> const void* {
                                      static const T defaults{};
                                      return &defaults;
                                    },
                                    [](void* p) { *static_cast<T*>(p) = T{}; },
                                    [](const void* p, Problems& problems, const std::string& path) {
                                      if constexpr (HasCheck<T>) {
                                        static_cast<const T*>(p)->check(problems, path);
                                      }
                                    }});
  }
}

}  // namespace detail

// bool, std::int64_t, double, std::string, an enum with config_names(E), std::optional (null),
// std::vector, std::array, std::variant (told apart by the kind of JSON value), a structure with
// fields(), a family (OneOf).
template <class T>
const Type& type_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return detail::bool_type();
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return detail::integer_type();
  } else if constexpr (std::is_same_v<T, double>) {
    return detail::number_type();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return detail::string_type();
  } else {
    static const auto type = detail::make_type<T>();
    return type;
  }
}

}  // namespace norma::config
