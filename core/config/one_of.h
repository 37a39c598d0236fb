// A family: one of several configuration structures, told apart by `type` in the JSON.
//
//   struct OptimizerConfig : config::OneOf<SgdConfig, AdamWConfig> {
//     static constexpr const char* family = "optimizer";
//     static constexpr const char* family_doc = "How a gradient becomes a step.";
//     using OneOf::OneOf;
//   };
//
// A member is a structure with `type` (its name), `doc` (one sentence), `source` (who states it)
// and fields(). To add one: write it, and put its name in the list. In JSON it is {"type": "sgd",
// ...}, or "sgd" alone. The default is the first member. A family may be declared ahead (`struct
// LayerConfig;`), and a member may hold a std::vector of it: so a layer contains layers.
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/config/type.h"

namespace norma::config {

// A named part of a family's list, to be used in several families.
template <class... Ts>
struct TypeList {};

namespace detail {

template <class Done, class... Ts>
struct Flatten;
template <class... Done>
struct Flatten<TypeList<Done...>> {
  using Variant = std::variant<Done...>;
  using Tuple = std::tuple<Done...>;
};
template <class... Done, class T, class... Rest>
struct Flatten<TypeList<Done...>, T, Rest...> : Flatten<TypeList<Done..., T>, Rest...> {};
template <class... Done, class... Ts, class... Rest>
struct Flatten<TypeList<Done...>, TypeList<Ts...>, Rest...>
    : Flatten<TypeList<Done...>, Ts..., Rest...> {};

template <class T, class V>
struct IsAlternative : std::false_type {};
template <class T, class... Ts>
struct IsAlternative<T, std::variant<Ts...>> : std::disjunction<std::is_same<T, Ts>...> {};

}  // namespace detail

// Ts: member structures and TypeLists of them.
template <class... Ts>
class OneOf {
 public:
  using Variant = typename detail::Flatten<TypeList<>, Ts...>::Variant;
  // The members as a std::tuple, for typed tests (TEMPLATE_LIST_TEST_CASE).
  using Members = typename detail::Flatten<TypeList<>, Ts...>::Tuple;
  static constexpr bool kIsFamily = true;

  OneOf() = default;
  template <class T>
  requires detail::IsAlternative<std::remove_cvref_t<T>, Variant>::value OneOf(T&& member)
      : value_(std::forward<T>(member)) {}  // NOLINT: a member is one of the family

  // Calls f with the member that is held.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), value_);
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    return std::visit(std::forward<F>(f), value_);
  }
  // The member if it is a T, else null.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  template <class T>
  [[nodiscard]] T* get_if() {
    return std::get_if<T>(&value_);
  }
  // The name of the member that is held.
  [[nodiscard]] const char* type() const {
    return visit([](const auto& member) { return std::remove_cvref_t<decltype(member)>::type; });
  }

  // The description of Family, which derives from this.
  template <class Family>
  [[nodiscard]] static FamilyType family_type() {
    static_assert(std::is_base_of_v<OneOf, Family>);
    return make<Family>(std::make_index_sequence<std::variant_size_v<Variant>>());
  }

 private:
  template <class Family, std::size_t... I>
  static FamilyType make(std::index_sequence<I...>) {
    return FamilyType(Family::family, Family::family_doc, {member<Family, I>()...},
                      {[](const void* p) { return static_cast<const Family*>(p)->value_.index(); },
                       [](const void* p) -> const void* {
                         return static_cast<const Family*>(p)->visit(
                             [](const auto& held) -> const void* { return &held; });
                       }});
  }
  template <class Family, std::size_t I>
  static FamilyType::Member member() {
    using T = std::variant_alternative_t<I, Variant>;
    return {T::type, T::doc, T::source, &type_of<T>, [](void* p) -> void* {
              return &static_cast<OneOf*>(static_cast<Family*>(p))->value_.template emplace<I>();
            }};
  }

  Variant value_;
};

}  // namespace norma::config
