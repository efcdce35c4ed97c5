// From the window to the command line that opens it as it stands.
#pragma once

#include <QString>
#include <string>

namespace statescope {

class MainWindow;

struct OpeningCommand {
  std::string line;  // empty: there is none
  QString remark;    // what the line does not bring, or why there is none
};
OpeningCommand opening_command(const MainWindow& window);

void copy_opening_command(MainWindow& window);

}  // namespace statescope
