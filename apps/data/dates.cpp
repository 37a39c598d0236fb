#include "apps/data/dates.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "apps/data/tokenizer.h"

namespace norma {
namespace {

namespace chrono = std::chrono;

constexpr chrono::sys_days kFirst = chrono::year{1900} / 1 / 1;
constexpr chrono::sys_days kEnd = chrono::year{2100} / 1 / 1;
constexpr std::int64_t kDays = (kEnd - kFirst).count();

constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                 "May",       "June",     "July",     "August",
                                                 "September", "October",  "November", "December"};
constexpr std::array<const char*, 7> kWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                  "Thursday", "Friday", "Saturday"};

// What a form is written from; {0} and so on are these, in this order.
//   0 year  1 month  2 day (numbers)  3 March  4 Mar  5 5th  6 Thursday  7 Thu
constexpr std::array<const char*, 18> kForms = {
    "{3} {2}, {0}",      "{2} {3} {0}",        "{4} {2}, {0}",      "{2} {4} {0}",
    "{6}, {3} {2}, {0}", "{6}, {2} {3} {0}",   "{7} {2} {4} {0}",   "{3} {5}, {0}",
    "{6}, {3} {5}, {0}", "the {5} of {3} {0}", "{0} {3} {2}",       "{0}, {4} {2}",
    "{2}-{4}-{0}",       "{1}/{2}/{0}",        "{1:02}/{2:02}/{0}", "{2}.{1}.{0}",
    "{2:02}.{1:02}.{0}", "{0}{1:02}{2:02}"};
constexpr std::int64_t kLongest = 31;  // "Wednesday, September 30th, 1987"
constexpr std::int64_t kIso = 10;

const char* ordinal(unsigned day) {
  if (day / 10 == 1) return "th";
  constexpr std::array<const char*, 4> kEndings = {"th", "st", "nd", "rd"};
  return day % 10 < 4 ? kEndings[day % 10] : "th";
}

enum class Case : std::uint8_t { as_written, lower, upper };

void change_case(std::string& text, Case wanted) {
  for (char& c : text) {
    const bool upper = c >= 'A' && c <= 'Z', lower = c >= 'a' && c <= 'z';
    if (wanted == Case::lower && upper) c = static_cast<char>(c - 'A' + 'a');
    if (wanted == Case::upper && lower) c = static_cast<char>(c - 'a' + 'A');
  }
}

const Tokenizer& date_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::characters(
      " ,-./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "dates");
  return tokenizer;
}

class Dates final : public SequenceTask {
 public:
  Dates(const DatesConfig& config, const DataContext& context)
      : SequenceTask(
            DatesConfig::type, config,
            {.vocab = date_tokenizer().vocab(), .source = kLongest, .answer = kIso, .varies = true},
            context) {
    check_questions(kDays);
    date_tokenizer().keep(mutable_record());
  }
  [[nodiscard]] const Tokenizer* tokenizer() const override { return &date_tokenizer(); }

 protected:
  void make_sample(Part part, RandomStream& stream, std::vector<std::int64_t>& source,
                   std::span<std::int64_t> answer) const override {
    const std::int64_t day = draw_question(part, stream, kDays);
    std::string text = write_date(day, stream.below(num_date_forms()));
    // Half as English has it, a quarter each in small and in capital letters.
    constexpr std::array<Case, 4> kCases = {Case::as_written, Case::as_written, Case::lower,
                                            Case::upper};
    change_case(text, kCases[static_cast<std::size_t>(stream.below(4))]);
    source = date_tokenizer().encode(text);
    const std::vector<std::int64_t> iso = date_tokenizer().encode(iso_date(day));
    std::copy(iso.begin(), iso.end(), answer.begin());
  }
};

}  // namespace

std::int64_t num_date_forms() { return static_cast<std::int64_t>(kForms.size()); }

std::string write_date(std::int64_t day, std::int64_t form) {
  const chrono::sys_days point = kFirst + chrono::days(day);
  const chrono::year_month_day date(point);
  const auto d = static_cast<unsigned>(date.day());
  const auto m = static_cast<unsigned>(date.month());
  const std::string_view month = kMonths[m - 1];
  const std::string_view weekday = kWeekdays[chrono::weekday(point).c_encoding()];
  return fmt::format(fmt::runtime(kForms.at(static_cast<std::size_t>(form))),
                     static_cast<int>(date.year()), m, d, month, month.substr(0, 3),
                     fmt::format("{}{}", d, ordinal(d)), weekday, weekday.substr(0, 3));
}

std::string iso_date(std::int64_t day) {
  const chrono::year_month_day date(kFirst + chrono::days(day));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

std::unique_ptr<DataSet> DatesConfig::make(const DataContext& run) const {
  return std::make_unique<Dates>(*this, run);
}

}  // namespace norma
