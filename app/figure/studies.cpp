#include "app/figure/studies.h"

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {

std::unique_ptr<PanelPicture> make_study(const FigurePanel& panel, FigureRuns&) {
  throw Error("there is no study " + in_quotes(panel.chart));
}

}  // namespace statescope
