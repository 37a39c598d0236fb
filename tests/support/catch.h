// Catch2, version 2 or 3, and small helpers for errors.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // Catch2 2 has it in the global namespace
#else
#include <catch2/catch.hpp>
#endif

#include <exception>
#include <string>

namespace norma::test {

// The message of the exception that f throws, or "" if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

// True iff `text` stands in `message`.
inline bool contains(const std::string& message, const std::string& text) {
  return message.find(text) != std::string::npos;
}

}  // namespace norma::test

// The expression throws, and its message contains the text.
#define NORMA_CHECK_ERROR(expression, text)                                                 \
  do {                                                                                      \
    const std::string norma_message = ::norma::test::error_of([&] { (void)(expression); }); \
    INFO("message: " << norma_message);                                                     \
    CHECK(::norma::test::contains(norma_message, text));                                    \
  } while (false)
