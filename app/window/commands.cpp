#include "app/controls/commands.h"

#include <QCoreApplication>
#include <algorithm>

#include "app/lesson/player.h"
#include "app/window/branch_commands.h"
#include "app/window/context_menu.h"
#include "app/window/main_window.h"
#include "app/window/opening_command.h"
#include "views/chosen.h"

namespace statescope {
namespace {

using W = MainWindow;

constexpr double pan_step = 0.125;  // of the view

template <int percent>
constexpr Command scale_command(std::string_view id, const char* text) {
  return {id,
          Menu::view,
          QT_TRANSLATE_NOOP("Commands", "Type and spacing"),
          text,
          "",
          [](W& w, int) { w.set_scale(percent / 100.0f); },
          [](const W& w) { return w.wanted_scale() == percent / 100.0f; }};
}

template <ThemeChoice choice>
constexpr Command theme_command(std::string_view id, const char* text) {
  return {id,
          Menu::view,
          QT_TRANSLATE_NOOP("Commands", "Theme"),
          text,
          "",
          [](W& w, int) { w.set_theme(choice); },
          [](const W& w) { return w.theme() == choice; }};
}

template <std::size_t index>
Command preset_command(std::string_view id, const char* keys) {
  return {id, Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), presets()[index].name, keys, [](W& w, int) {
            w.arrange_as(presets()[index]);
          }};
}

template <InterventionKind kind>
constexpr Command intervene_command(std::string_view id, const char* text) {
  return {id, Menu::run, QT_TRANSLATE_NOOP("Commands", "Intervene"), text, "", [](W& w, int) { intervene_here(w, kind); }};
}

/// The whole row of the chosen cell.
void choose_row(W& w) { w.navigator().move({.row = std::max<std::int64_t>(w.navigator().cursor().row, 0), .column = -1}); }

const Command all_commands[] = {
    {"start", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Start page"), "Alt+Home", [](W& w, int) { w.show_start(); }},
    {"open-file", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Open checkpoint…"), "Ctrl+O",
     [](W& w, int) { w.choose_checkpoint_file(); }},
    {"open-folder", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Open model folder…"), "Ctrl+Shift+O",
     [](W& w, int) { w.choose_checkpoint_folder(); }},
    {"open-prompt", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Open prompt…"), "Ctrl+P",
     [](W& w, int) { w.choose_prompt_file(); }},
    {"write-prompt", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Write a prompt"), "Ctrl+T",
     [](W& w, int) { w.show_page(SidePage::prompt); }},
    {"compare", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Compare with…"), "Ctrl+Shift+C",
     [](W& w, int) { w.choose_to_compare(); }},
    {"compare-stop", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Stop comparing"), "Ctrl+Alt+C",
     [](W& w, int) { w.stop_comparing(); }},
    {"training", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Watch a training…"), "Ctrl+Alt+T",
     [](W& w, int) { w.show_training(); }},
    {"open-session", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Open session…"), "Ctrl+Alt+O",
     [](W& w, int) { choose_session_to_open(w); }},
    {"save-session", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Save session"), "Ctrl+S", [](W& w, int) { save_session(w); }},
    {"save-session-as", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Save session as…"), "Ctrl+Shift+S",
     [](W& w, int) { save_session_as(w); }},
    {"share-session", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Session in one file, to share…"), "",
     [](W& w, int) { share_session(w); }},
    {"export", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Export this view…"), "E",
     [](W& w, int) { w.show_page(SidePage::figure); }},
    {"copy-command", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Copy the command that opens this"), "Ctrl+Alt+K",
     [](W& w, int) { copy_opening_command(w); }},
    {"preferences", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Preferences"), "Ctrl+,",
     [](W& w, int) { w.show_page(SidePage::preferences); }},
    {"quit", Menu::file, nullptr, QT_TRANSLATE_NOOP("Commands", "Quit"), "Ctrl+Q", [](W& w, int) { w.close(); }},

    theme_command<ThemeChoice::system>("theme-system", QT_TRANSLATE_NOOP("Commands", "Follow the desktop")),
    theme_command<ThemeChoice::light>("theme-light", QT_TRANSLATE_NOOP("Commands", "Light")),
    theme_command<ThemeChoice::dark>("theme-dark", QT_TRANSLATE_NOOP("Commands", "Dark")),
    theme_command<ThemeChoice::high_contrast>("theme-high-contrast", QT_TRANSLATE_NOOP("Commands", "High contrast")),
    scale_command<100>("scale-100", QT_TRANSLATE_NOOP("Commands", "1×")),
    scale_command<125>("scale-125", QT_TRANSLATE_NOOP("Commands", "1.25×")),
    scale_command<150>("scale-150", QT_TRANSLATE_NOOP("Commands", "1.5×")),
    scale_command<200>("scale-200", QT_TRANSLATE_NOOP("Commands", "2×")),
    scale_command<300>("scale-300", QT_TRANSLATE_NOOP("Commands", "3×")),
    {"scale-up", Menu::view, QT_TRANSLATE_NOOP("Commands", "Type and spacing"), QT_TRANSLATE_NOOP("Commands", "Larger type"),
     "Ctrl++; Ctrl+=", [](W& w, int) { w.set_scale(w.wanted_scale() + 0.25f); }},
    {"scale-down", Menu::view, QT_TRANSLATE_NOOP("Commands", "Type and spacing"), QT_TRANSLATE_NOOP("Commands", "Smaller type"), "Ctrl+-",
     [](W& w, int) { w.set_scale(w.wanted_scale() - 0.25f); }},
    preset_command<0>("arrangement-opening", "Ctrl+1"),
    preset_command<1>("arrangement-teaching", "Ctrl+2"),
    preset_command<2>("arrangement-needle", "Ctrl+3"),
    preset_command<3>("arrangement-collapse", "Ctrl+4"),
    preset_command<4>("arrangement-head-gates", "Ctrl+5"),
    preset_command<5>("arrangement-delta-rule", "Ctrl+6"),
    {"arrangement-own", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "My own"), "Ctrl+0",
     [](W& w, int) { w.arrange_as_kept(); }},
    {"arrangement-keep", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "Keep this as my own"),
     "Ctrl+Shift+K", [](W& w, int) { w.keep_arrangement(); }},
    {"view-wider", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "Wider view"),
     "Ctrl+Shift+Right", [](W& w, int) { w.stage().widen(1.25f); }},
    {"view-narrower", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "Narrower view"),
     "Ctrl+Shift+Left", [](W& w, int) { w.stage().widen(0.8f); }},
    {"view-higher", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "Taller view"), "Ctrl+Shift+Up",
     [](W& w, int) { w.stage().heighten(1.25f); }},
    {"view-lower", Menu::view, QT_TRANSLATE_NOOP("Commands", "Arrangement"), QT_TRANSLATE_NOOP("Commands", "Shorter view"),
     "Ctrl+Shift+Down", [](W& w, int) { w.stage().heighten(0.8f); }},
    {"view-add", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Add a view"), "A", [](W& w, int) { w.stage().add_view(); }},
    {"view-close", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Close this view"), "Ctrl+W",
     [](W& w, int) { w.stage().close_view(); }},
    {"view-large", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Make this view the large one"), "X",
     [](W& w, int) { w.stage().make_large(); }},
    {"view-apart", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "This view in a window of its own, or back"), "Shift+X",
     [](W& w, int) { w.toggle_apart(); }},
    {"place-next", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Go to the next view"), "F6",
     [](W& w, int) { w.rows().focus_next(1); }},
    {"place-previous", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Go to the previous view"), "Shift+F6",
     [](W& w, int) { w.rows().focus_next(-1); }},
    {"view-next", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Next view in this place"), "V",
     [](W& w, int) { w.focused_panel().next_view(); }},
    {"mode-next", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Next way to look at it"), "M",
     [](W& w, int) { w.focused_panel().next_mode(); }},
    {"range", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Range of the colours, with a histogram"), "C",
     [](W& w, int) { w.focused_panel().toggle_range_bar(); }},
    {"difference", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Compare with this token, or with none"), "D",
     [](W& w, int) { w.toggle_reference(); }},
    {"compare-next", Menu::view, QT_TRANSLATE_NOOP("Commands", "Compared models"),
     QT_TRANSLATE_NOOP("Commands", "Compare A with the next model"), "Ctrl+Shift+N", [](W& w, int) { w.comparison().choose_next(); }},
    {"compare-difference", Menu::view, QT_TRANSLATE_NOOP("Commands", "Compared models"), QT_TRANSLATE_NOOP("Commands", "What is different"),
     "Shift+D", [](W& w, int) { w.rows().set_difference_shown(!w.rows().is_difference_shown()); },
     [](const W& w) { return w.rows().is_difference_shown(); }},
    {"zoom-in", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Zoom in"), "+; =", [](W& w, int) { w.focused_panel().zoom(1.25f); }},
    {"zoom-out", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Zoom out"), "-", [](W& w, int) { w.focused_panel().zoom(0.8f); }},
    {"zoom-fit", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Zoom to fit"), "0", [](W& w, int) { w.focused_panel().fit(); }},
    {"pan-left", Menu::view, QT_TRANSLATE_NOOP("Commands", "Enlarged drawing"), QT_TRANSLATE_NOOP("Commands", "Look further left"),
     "Alt+Shift+Left", [](W& w, int) { w.focused_panel().pan({-pan_step, 0}); }},
    {"pan-right", Menu::view, QT_TRANSLATE_NOOP("Commands", "Enlarged drawing"), QT_TRANSLATE_NOOP("Commands", "Look further right"),
     "Alt+Shift+Right", [](W& w, int) { w.focused_panel().pan({pan_step, 0}); }},
    {"pan-up", Menu::view, QT_TRANSLATE_NOOP("Commands", "Enlarged drawing"), QT_TRANSLATE_NOOP("Commands", "Look further up"),
     "Alt+Shift+Up", [](W& w, int) { w.focused_panel().pan({0, -pan_step}); }},
    {"pan-down", Menu::view, QT_TRANSLATE_NOOP("Commands", "Enlarged drawing"), QT_TRANSLATE_NOOP("Commands", "Look further down"),
     "Alt+Shift+Down", [](W& w, int) { w.focused_panel().pan({0, pan_step}); }},
    {"side", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Inspector"), "I", [](W& w, int) { w.toggle_side(); },
     [](const W& w) { return w.side_is_shown(); }},
    {"presenter", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Presenter"), "F; F11", [](W& w, int) { w.toggle_presenter(); },
     [](const W& w) { return w.is_presenting(); }},
    {"present", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Begin presenting, as a remote does"), "F5; Shift+F5",
     [](W& w, int) { w.begin_presenting(); }},
    {"reduce-motion", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Reduce motion"), "",
     [](W& w, int) { w.set_reduce_motion(!w.reduces_motion()); }, [](const W& w) { return w.reduces_motion(); }},

    {"place-menu", Menu::view, nullptr, QT_TRANSLATE_NOOP("Commands", "Menu of this place"), "Shift+F10; Menu",
     [](W& w, int) { show_menu_here(w); }},

    {"palette", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Find anything…"), "Ctrl+K", [](W& w, int) { w.show_palette(); }},
    {"back", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Back to the previous place"), "Z", [](W& w, int) { w.go_back(); }},
    {"forth", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Forward again"), "Shift+Z", [](W& w, int) { w.go_forth(); }},
    {"next", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Next token"), "Right", [](W& w, int) { w.navigator().step(1); }},
    {"previous", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Previous token"), "Left", [](W& w, int) { w.navigator().step(-1); }},
    {"page-down", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Next step of the lesson, or next token without a lesson"), "PgDown",
     [](W& w, int) { w.turn_page(1); }},
    {"page-up", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Previous step of the lesson, or previous token without a lesson"), "PgUp",
     [](W& w, int) { w.turn_page(-1); }},
    {"next-ten", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Ten tokens forward"), "Shift+Right",
     [](W& w, int) { w.navigator().step(10); }},
    {"previous-ten", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Ten tokens back"), "Shift+Left",
     [](W& w, int) { w.navigator().step(-10); }},
    {"next-span", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Next needle, question, answer or breakpoint"), "Ctrl+Right",
     [](W& w, int) { w.playback().step_to_stop(1); }},
    {"previous-span", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Previous needle, question, answer or breakpoint"), "Ctrl+Left",
     [](W& w, int) { w.playback().step_to_stop(-1); }},
    {"first", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "First token"), "Home", [](W& w, int) { w.go_to_token(0); }},
    {"last", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Last token"), "End",
     [](W& w, int) { w.go_to_token(w.navigator().tokens() - 1); }},
    {"go-to", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Go to token"), "G", [](W& w, int) { w.ask_for_token(); }},
    {"find-text", Menu::go, nullptr, QT_TRANSLATE_NOOP("Commands", "Find in the text"), "Ctrl+F", [](W& w, int) { w.find_text(); }},
    {"layer-up", Menu::go, QT_TRANSLATE_NOOP("Commands", "Layer and head"), QT_TRANSLATE_NOOP("Commands", "Layer above"), "Up",
     [](W& w, int) { w.navigator().step_layer(1); }},
    {"layer-down", Menu::go, QT_TRANSLATE_NOOP("Commands", "Layer and head"), QT_TRANSLATE_NOOP("Commands", "Layer below"), "Down",
     [](W& w, int) { w.navigator().step_layer(-1); }},
    {"head-next", Menu::go, QT_TRANSLATE_NOOP("Commands", "Layer and head"), QT_TRANSLATE_NOOP("Commands", "Next head"), "]",
     [](W& w, int) { w.navigator().step_head(1); }},
    {"head-previous", Menu::go, QT_TRANSLATE_NOOP("Commands", "Layer and head"), QT_TRANSLATE_NOOP("Commands", "Previous head"), "[",
     [](W& w, int) { w.navigator().step_head(-1); }},
    {"slot", Menu::go, QT_TRANSLATE_NOOP("Commands", "Partition"), QT_TRANSLATE_NOOP("Commands", "Partition"), "1; 2; 3; 4; 5; 6; 7; 8; 9",
     [](W& w, int key) { w.choose_slot(std::to_string(key + 1)); }, nullptr, true},
    {"slot-shared", Menu::go, QT_TRANSLATE_NOOP("Commands", "Partition"), QT_TRANSLATE_NOOP("Commands", "Shared partition"), "S",
     [](W& w, int) { w.choose_slot("shared"); }},
    {"cell-up", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "Cell above"), "Alt+Up",
     [](W& w, int) { w.step_cell(-1, 0); }},
    {"cell-down", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "Cell below"), "Alt+Down",
     [](W& w, int) { w.step_cell(1, 0); }},
    {"cell-left", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "Cell to the left"), "Alt+Left",
     [](W& w, int) { w.step_cell(0, -1); }},
    {"cell-right", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "Cell to the right"), "Alt+Right",
     [](W& w, int) { w.step_cell(0, 1); }},
    {"cell-row", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "The cell’s whole row"), "W",
     [](W& w, int) { choose_row(w); }},
    {"cell-partition", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"), QT_TRANSLATE_NOOP("Commands", "The partition’s whole state"),
     "Shift+W", [](W& w, int) { w.navigator().move({.row = kAllRows, .column = -1}); }},
    {"choose-marked", Menu::go, QT_TRANSLATE_NOOP("Commands", "Cell"),
     QT_TRANSLATE_NOOP("Commands", "Choose the marked cell (Enter in its view)"), "", [](W& w, int) { w.focused_panel().choose_marked(); }},

    {"play", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Play or pause"), "Space", [](W& w, int) { w.playback().toggle_play(); }},
    {"faster", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Faster (presenting: blank the screen)"), ".",
     [](W& w, int) { w.press_period(); }},
    {"slower", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Slower"), ",", [](W& w, int) { w.step_speed(-1); }},
    {"breakpoint", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Breakpoint at this token (presenting: blank the screen)"), "B",
     [](W& w, int) { w.press_b(); }},
    {"breakpoints", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Breakpoints…"), "Ctrl+B",
     [](W& w, int) { w.show_page(SidePage::breakpoints); }},
    {"loop", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Loop"), "R", [](W& w, int) { w.playback().toggle_loop(); },
     [](const W& w) { return w.playback().loop().has_value(); }},
    {"loop-from", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Loop from this token"), "Shift+I",
     [](W& w, int) { w.playback().loop_from_here(); }},
    {"loop-to", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Loop up to this token"), "Shift+O",
     [](W& w, int) { w.playback().loop_to_here(); }},
    {"interventions", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Interventions…"), "Ctrl+I",
     [](W& w, int) { w.show_page(SidePage::interventions); }},
    {"undo-intervention", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Undo the intervention"), "Ctrl+Z",
     [](W& w, int) { undo_intervention(w); }},
    {"redo-intervention", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Redo the intervention"), "Ctrl+Shift+Z; Ctrl+Y",
     [](W& w, int) { redo_intervention(w); }},
    intervene_command<InterventionKind::zero_row>("zero-row", QT_TRANSLATE_NOOP("Commands", "Zero this row from here")),
    intervene_command<InterventionKind::zero_head>("zero-head", QT_TRANSLATE_NOOP("Commands", "Zero this head from here")),
    intervene_command<InterventionKind::zero_partition>("zero-partition", QT_TRANSLATE_NOOP("Commands", "Zero this partition from here")),
    intervene_command<InterventionKind::freeze_decay>("freeze-decay", QT_TRANSLATE_NOOP("Commands", "Freeze this layer's decay from here")),
    {"generate", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Generate 32 more tokens"), "Ctrl+G",
     [](W& w, int) { w.navigator().generate_more(32); }},
    {"parent-beside", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Show the previous branch beside this one"), "Ctrl+Shift+B",
     [](W& w, int) { toggle_parent_beside(w); }, [](const W& w) { return w.comparison().shows_parent(); }},
    {"cancel", Menu::run, nullptr, QT_TRANSLATE_NOOP("Commands", "Cancel opening, reading, generating or an intervention"), "Esc",
     [](W& w, int) { w.escape(); }},

    {"lessons", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Lessons"), "F2", [](W& w, int) { w.toggle_lessons(); },
     [](const W& w) { return w.lessons_are_shown(); }},
    {"lesson-open", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Open lesson…"), "", [](W& w, int) { w.choose_lesson_file(); }},
    {"lesson-next", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Next step"), "N", [](W& w, int) { w.next_step(); }},
    {"lesson-previous", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Previous step"), "P",
     [](W& w, int) { w.lesson().previous(); }},
    {"lesson-picture", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Back to the lesson’s picture"), "H",
     [](W& w, int) { w.lesson().show_picture(); }},
    {"lesson-choice", Menu::learn, QT_TRANSLATE_NOOP("Commands", "Predict"), QT_TRANSLATE_NOOP("Commands", "Option"),
     "Alt+1; Alt+2; Alt+3; Alt+4; Alt+5; Alt+6; Alt+7; Alt+8; Alt+9",
     [](W& w, int key) { w.lesson().predict(static_cast<std::size_t>(key)); }, nullptr, true},
    {"teacher", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "The teacher’s window: notes, what comes next, the time"), "Shift+F2",
     [](W& w, int) { w.toggle_teacher(); }, [](const W& w) { return w.teacher_is_shown(); }},
    {"lesson-leave", Menu::learn, nullptr, QT_TRANSLATE_NOOP("Commands", "Leave the lesson"), "Ctrl+Shift+L",
     [](W& w, int) { w.leave_lesson(); }},

    {"keys", Menu::help, nullptr, QT_TRANSLATE_NOOP("Commands", "Keys"), "F1", [](W& w, int) { w.show_page(SidePage::keys); }},
    {"words", Menu::help, nullptr, QT_TRANSLATE_NOOP("Commands", "What the words mean"), "Shift+F1",
     [](W& w, int) { w.show_page(SidePage::words); }},
    {"model", Menu::help, nullptr, QT_TRANSLATE_NOOP("Commands", "About this model"), "", [](W& w, int) { w.show_page(SidePage::model); }},
    {"about", Menu::help, nullptr, QT_TRANSLATE_NOOP("Commands", "About Statescope"), "", [](W& w, int) { w.show_page(SidePage::about); }},
};

}  // namespace

std::span<const Command> commands() { return all_commands; }

bool begins_group(const Command& command) {
  static constexpr std::string_view first[] = {
      "compare", "open-session", "export", "preferences", "view-add", "mode-next",     "zoom-in",  "side",   "back",        "next",
      "go-to",   "layer-up",     "faster", "breakpoint",  "loop",     "interventions", "generate", "cancel", "lesson-next", "model"};
  return std::ranges::count(first, command.id) > 0;
}

bool is_available(const Command& command, const MainWindow& window) {
  struct Need {
    std::string_view id;
    bool (*is_there)(const W&);
  };
  constexpr auto run = [](const W& w) { return w.navigator().run() != nullptr; };
  constexpr auto lesson = [](const W& w) { return w.lesson().lesson() != nullptr; };
  constexpr auto several = [](const W& w) { return w.comparison().is_on(); };
  static constexpr Need needs[] = {{"write-prompt", run},
                                   {"compare", [](const W& w) { return !w.comparison().is_full(); }},
                                   {"compare-stop", several},
                                   {"compare-next", several},
                                   {"save-session", run},
                                   {"save-session-as", run},
                                   {"share-session", [](const W& w) { return has_session(w); }},
                                   {"export", run},
                                   {"copy-command", run},
                                   {"arrangement-own", [](const W& w) { return w.has_kept_arrangement(); }},
                                   {"back", run},
                                   {"forth", run},
                                   {"next", run},
                                   {"previous", run},
                                   {"next-ten", run},
                                   {"previous-ten", run},
                                   {"next-span", run},
                                   {"previous-span", run},
                                   {"first", run},
                                   {"last", run},
                                   {"go-to", run},
                                   {"find-text", run},
                                   {"play", run},
                                   {"breakpoint", run},
                                   {"loop", run},
                                   {"loop-from", run},
                                   {"loop-to", run},
                                   {"interventions", run},
                                   {"zero-row", run},
                                   {"zero-head", run},
                                   {"zero-partition", run},
                                   {"freeze-decay", run},
                                   {"generate", run},
                                   {"difference", run},
                                   {"undo-intervention", [](const W& w) { return w.navigator().parent() != nullptr; }},
                                   {"parent-beside", [](const W& w) { return w.navigator().parent() != nullptr; }},
                                   {"lesson-next", lesson},
                                   {"lesson-previous", lesson},
                                   {"lesson-picture", lesson},
                                   {"lesson-leave", lesson},
                                   {"model", run}};
  const auto need = std::ranges::find(needs, command.id, &Need::id);
  return need == std::end(needs) || need->is_there(window);
}

QString command_words(const char* text) { return QCoreApplication::translate("Commands", text); }

QList<QKeySequence> keys_of(const Command& command) {
  if (*command.keys == '\0') return {};
  return QKeySequence::listFromString(QString::fromLatin1(command.keys));
}

QString title_of(Menu menu) {
  switch (menu) {
    case Menu::file:
      return QCoreApplication::translate("Commands", "File");
    case Menu::view:
      return QCoreApplication::translate("Commands", "View");
    case Menu::go:
      return QCoreApplication::translate("Commands", "Go");
    case Menu::run:
      return QCoreApplication::translate("Commands", "Run");
    case Menu::learn:
      return QCoreApplication::translate("Commands", "Learn");
    case Menu::help:
      return QCoreApplication::translate("Commands", "Help");
  }
  return {};
}

}  // namespace statescope
