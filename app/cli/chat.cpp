#include <cstdio>
#include <iostream>
#include <string>

#include "app/cli/commands.h"
#include "app/common/console.h"
#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/chat/values/json.h"
#include "engine/error.h"

namespace statescope {

int chat_command(const ChatArguments& arguments) {
  const chat::TemplateFolder folder(arguments.path);
  chat::RequestDefaults defaults{arguments.template_name, arguments.now.empty() ? chat::local_time() : chat::parse_time(arguments.now), {}};
  for (const std::string& setting : arguments.settings) chat::add_setting(defaults.variables, setting);
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string out = chat::answer(line, folder, defaults) + "\n";
    if (std::fwrite(out.data(), 1, out.size(), stdout) != out.size()) fail_standard_output();
  }
  finish_standard_output();
  return 0;
}

}  // namespace statescope
