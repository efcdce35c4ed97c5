#include "engine/analysis/interval.h"

#include <vector>

#include "tests/catch.h"

namespace statescope::test::interval_test {

using Catch::Matchers::WithinAbs;

TEST_CASE("Wilson's interval has its known values") {
  // Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I.
  struct Known {
    double successes;
    std::int64_t n;
    double low, high;
  };
  for (const Known& known : {Known{81, 263, 0.2553, 0.3662}, Known{15, 148, 0.0624, 0.1605}, Known{0, 20, 0, 0.1611},
                             Known{1, 29, 0.0061, 0.1718}, Known{29, 29, 0.8830, 1}}) {
    const Estimate estimate = wilson(known.successes, known.n);
    INFO(known.successes << " of " << known.n);
    CHECK(estimate.mean == known.successes / static_cast<double>(known.n));
    CHECK_THAT(estimate.low, WithinAbs(known.low, 5e-5));
    CHECK_THAT(estimate.high, WithinAbs(known.high, 5e-5));
  }
}

TEST_CASE("examples with several questions are the unit of their interval") {
  const std::vector<double> fractions{1, 0.5, 0.5, 0, 1, 0.75};  // mean 0.625, sd √(0.71875 / 5)
  const Estimate estimate = clustered(fractions);
  CHECK_THAT(standard_error(fractions), WithinAbs(0.15478, 1e-5));
  CHECK(estimate.mean == 0.625);
  CHECK_THAT(estimate.low, WithinAbs(0.625 - 1.959964 * 0.154785, 1e-5));
  CHECK_THAT(estimate.high, WithinAbs(0.625 + 1.959964 * 0.154785, 1e-5));
  CHECK(clustered(std::vector<double>{1, 1, 1, 0.9}).high == 1);
  CHECK(clustered(std::vector<double>{0, 0, 0, 0.1}).low == 0);
}

TEST_CASE("examples that all agree do not prove certainty") {
  const Estimate certain = clustered(std::vector<double>(50, 1.0));
  CHECK(certain.mean == 1);
  CHECK(certain.high == 1);
  CHECK_THAT(certain.low, WithinAbs(wilson(50, 50).low, 1e-12));
  CHECK(standard_error(std::vector<double>{0.3}) == 0);
}

}  // namespace statescope::test::interval_test
