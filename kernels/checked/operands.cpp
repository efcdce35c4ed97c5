#include "kernels/checked/operands.h"

#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace statescope {
namespace {

namespace fields {

/// Becomes a field of any type.
struct Any {
  template <class T>
  operator T&() const;
};

template <class T, std::size_t... i>
constexpr bool has(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), Any())...}; };
}

/// Fields of a struct without a constructor.
template <class T, std::size_t most = 20>
constexpr std::size_t count() {
  if constexpr (most == 0 || has<T>(std::make_index_sequence<most>())) {
    return most;
  } else {
    return count<T, most - 1>();
  }
}

template <std::size_t n>
using Count = std::integral_constant<std::size_t, n>;

#define STATESCOPE_TIE(count, ...)      \
  template <class T>                    \
  auto tied(const T& x, Count<count>) { \
    const auto& [__VA_ARGS__] = x;      \
    return std::tie(__VA_ARGS__);       \
  }
STATESCOPE_TIE(1, a)
STATESCOPE_TIE(2, a, b)
STATESCOPE_TIE(3, a, b, c)
STATESCOPE_TIE(4, a, b, c, d)
STATESCOPE_TIE(5, a, b, c, d, e)
STATESCOPE_TIE(6, a, b, c, d, e, f)
STATESCOPE_TIE(7, a, b, c, d, e, f, g)
STATESCOPE_TIE(8, a, b, c, d, e, f, g, h)
STATESCOPE_TIE(9, a, b, c, d, e, f, g, h, i)
STATESCOPE_TIE(10, a, b, c, d, e, f, g, h, i, j)
STATESCOPE_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
STATESCOPE_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
STATESCOPE_TIE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
#undef STATESCOPE_TIE

}  // namespace fields

class OfFields {
 public:
  OfFields(OperandExchange& exchange, std::vector<std::shared_ptr<const void>>& kept) : exchange_(exchange), kept_(kept) {}

  Tensor operator()(const Tensor& x) { return exchange_.written(x); }
  ConstTensor operator()(const ConstTensor& x) { return exchange_.read(x); }
  const std::int32_t* operator()(const std::int32_t* const& list) { return exchange_.list(list); }
  Workspace& operator()(Workspace& workspace) { return exchange_.scratch(workspace); }
  template <class... All>
  std::variant<All...> operator()(const std::variant<All...>& x) {
    return std::visit([this](const auto& one) -> std::variant<All...> { return (*this)(one); }, x);
  }
  template <class T>
  std::span<const T> operator()(const std::span<const T>& all) {
    if constexpr (std::is_class_v<T>) {
      return kept((*this)(std::vector<T>(all.begin(), all.end())));
    } else {
      return all;
    }
  }
  template <class T>
  std::vector<T> operator()(const std::vector<T>& all) {
    std::vector<T> others;
    for (const T& one : all) others.push_back((*this)(one));
    return others;
  }
  template <class T>
  const T* operator()(const T* const& x) {
    return x == nullptr ? nullptr : &(*this)(*x);
  }
  template <class T>
  const T& operator()(const T& x) {
    if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
      const auto with_others = [this](auto&... fields) { return T{(*this)(fields)...}; };
      return kept(std::apply(with_others, fields::tied(x, fields::Count<fields::count<T>()>())));
    } else {
      return x;
    }
  }

 private:
  template <class T>
  const T& kept(T x) {
    const auto here = std::make_shared<const T>(std::move(x));
    kept_.push_back(here);
    return *here;
  }

  OperandExchange& exchange_;
  std::vector<std::shared_ptr<const void>>& kept_;
};

}  // namespace

Operation OtherOperands::of(const Operation& operation) { return OfFields(exchange_, kept_)(operation); }

}  // namespace statescope
