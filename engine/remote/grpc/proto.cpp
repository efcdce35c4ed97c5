#include "engine/remote/grpc/proto.h"

#include <utility>

#include <engine.pb.h>

namespace statescope::remote::proto {
namespace {

template <class... Cases>
struct Choose : Cases... {
  using Cases::operator()...;
};

}  // namespace

Request to_proto(remote::Request request) {
  Request to;
  to.set_number(request.number);
  to.set_heard(request.heard);
  to.set_id(request.id);
  std::visit(Choose{
                 [](std::monostate) {},
                 [&](remote::Open& x) {
                   to.mutable_open()->set_checkpoint(std::move(x.checkpoint));
                   to.mutable_open()->set_prompt(std::move(x.prompt));
                   to.mutable_open()->set_looks(x.looks);
                 },
                 [&](remote::Read& x) {
                   to.mutable_read()->set_prompt(std::move(x.prompt));
                   to.mutable_read()->set_looks(x.looks);
                 },
                 [&](remote::Generate& x) { to.mutable_generate()->set_tokens(x.tokens); },
                 [&](remote::Cancel&) { to.mutable_cancel(); },
                 [&](remote::Intervene& x) { to.mutable_intervene()->set_interventions(std::move(x.interventions)); },
                 [&](remote::AddRun& x) { to.mutable_add_run()->set_prompt(std::move(x.prompt)); },
                 [&](remote::Step& x) { to.mutable_step()->set_forwards(x.forwards); },
                 [&](remote::GoToBranch& x) { to.mutable_go_to_branch()->set_branch(x.branch); },
                 [&](remote::Save& x) { to.mutable_save()->set_path(std::move(x.path)); },
                 [&](remote::Stand& x) { to.mutable_stand()->set_place(std::move(x.place)); },
                 [&](remote::OpenSession& x) {
                   to.mutable_open_session()->set_path(std::move(x.path));
                   to.mutable_open_session()->set_located(std::move(x.located));
                 },
                 [&](remote::Show& x) {
                   Show& show = *to.mutable_show();
                   show.set_beside(x.beside);
                   show.set_layer(x.layer);
                   show.set_head(x.head);
                   show.set_token(x.token);
                 },
                 [&](remote::Ask& x) {
                   Ask& ask = *to.mutable_ask();
                   ask.set_asker(x.asker);
                   ask.set_run(x.run);
                   ask.set_beside(x.beside);
                   for (std::string& question : x.questions) ask.add_questions(std::move(question));
                 },
                 [&](remote::Leave&) { to.mutable_leave(); },
                 [&](remote::Describe& x) {
                   to.mutable_describe()->set_checkpoint(std::move(x.checkpoint));
                   to.mutable_describe()->set_digest(x.digest);
                 },
                 [&](remote::MakePrompt& x) {
                   MakePrompt& make = *to.mutable_make_prompt();
                   make.set_checkpoint(std::move(x.checkpoint));
                   make.set_conversation(std::move(x.conversation));
                   for (std::string& setting : x.settings) make.add_settings(std::move(setting));
                   make.set_text(std::move(x.text));
                   make.set_example(x.example);
                   make.set_number(x.number);
                 },
                 [&](remote::Decode& x) { to.mutable_decode()->mutable_ids()->Add(x.ids.begin(), x.ids.end()); },
                 [&](remote::Work& x) {
                   to.mutable_work()->set_checkpoint(std::move(x.checkpoint));
                   to.mutable_work()->set_job(std::move(x.job));
                 },
             },
             request.asked);
  return to;
}

remote::Request from_proto(Request&& from) {
  remote::Request to{.number = from.number(), .heard = from.heard(), .id = from.id()};
  switch (from.asked_case()) {
    case Request::kOpen: {
      Open& x = *from.mutable_open();
      to.asked = remote::Open{std::move(*x.mutable_checkpoint()), std::move(*x.mutable_prompt()), x.looks()};
      break;
    }
    case Request::kRead:
      to.asked = remote::Read{std::move(*from.mutable_read()->mutable_prompt()), from.read().looks()};
      break;
    case Request::kGenerate:
      to.asked = remote::Generate{from.generate().tokens()};
      break;
    case Request::kCancel:
      to.asked = remote::Cancel{};
      break;
    case Request::kIntervene:
      to.asked = remote::Intervene{std::move(*from.mutable_intervene()->mutable_interventions())};
      break;
    case Request::kAddRun:
      to.asked = remote::AddRun{std::move(*from.mutable_add_run()->mutable_prompt())};
      break;
    case Request::kStep:
      to.asked = remote::Step{from.step().forwards()};
      break;
    case Request::kGoToBranch:
      to.asked = remote::GoToBranch{from.go_to_branch().branch()};
      break;
    case Request::kSave:
      to.asked = remote::Save{std::move(*from.mutable_save()->mutable_path())};
      break;
    case Request::kStand:
      to.asked = remote::Stand{std::move(*from.mutable_stand()->mutable_place())};
      break;
    case Request::kOpenSession: {
      OpenSession& x = *from.mutable_open_session();
      to.asked = remote::OpenSession{std::move(*x.mutable_path()), std::move(*x.mutable_located())};
      break;
    }
    case Request::kShow: {
      const Show& x = from.show();
      to.asked = remote::Show{x.beside(), x.layer(), x.head(), x.token()};
      break;
    }
    case Request::kAsk: {
      Ask& x = *from.mutable_ask();
      remote::Ask ask{x.asker(), x.run(), x.beside(), {}};
      for (std::string& question : *x.mutable_questions()) ask.questions.push_back(std::move(question));
      to.asked = std::move(ask);
      break;
    }
    case Request::kLeave:
      to.asked = remote::Leave{};
      break;
    case Request::kDescribe: {
      Describe& x = *from.mutable_describe();
      to.asked = remote::Describe{std::move(*x.mutable_checkpoint()), x.digest()};
      break;
    }
    case Request::kMakePrompt: {
      MakePrompt& x = *from.mutable_make_prompt();
      to.asked = remote::MakePrompt{.checkpoint = std::move(*x.mutable_checkpoint()),
                                    .conversation = std::move(*x.mutable_conversation()),
                                    .settings = {x.settings().begin(), x.settings().end()},
                                    .text = std::move(*x.mutable_text()),
                                    .example = x.example(),
                                    .number = x.number()};
      break;
    }
    case Request::kDecode:
      to.asked = remote::Decode{{from.decode().ids().begin(), from.decode().ids().end()}};
      break;
    case Request::kWork: {
      Work& x = *from.mutable_work();
      to.asked = remote::Work{std::move(*x.mutable_checkpoint()), std::move(*x.mutable_job())};
      break;
    }
    case Request::ASKED_NOT_SET:
      break;
  }
  return to;
}

Event to_proto(remote::Event event) {
  Event to;
  to.set_number(event.number);
  to.set_heard(event.heard);
  to.set_id(event.id);
  std::visit(Choose{
                 [](std::monostate) {},
                 [&](remote::Welcome& x) {
                   Welcome& welcome = *to.mutable_welcome();
                   welcome.set_session(std::move(x.session));
                   welcome.set_resumed(x.resumed);
                   welcome.set_version(std::move(x.version));
                 },
                 [&](remote::Progressed& x) {
                   to.mutable_progressed()->set_fraction(x.fraction);
                   to.mutable_progressed()->set_what(std::move(x.what));
                 },
                 [&](remote::RunShown& x) { to.mutable_run_shown()->set_run(x.run); },
                 [&](remote::Failed& x) { to.mutable_failed()->set_failure(std::move(x.failure)); },
                 [&](remote::Done&) { to.mutable_done(); },
                 [&](remote::Remarked& x) {
                   to.mutable_remarked()->set_about(static_cast<std::uint32_t>(x.about));
                   to.mutable_remarked()->set_text(std::move(x.text));
                 },
                 [&](remote::BranchesChanged& x) {
                   to.mutable_branches()->set_tree(std::move(x.tree));
                   to.mutable_branches()->mutable_runs()->Add(x.runs.begin(), x.runs.end());
                 },
                 [&](remote::Placed& x) { to.mutable_placed()->set_place(std::move(x.place)); },
                 [&](remote::Saved&) { to.mutable_saved(); },
                 [&](remote::NotSaved& x) { to.mutable_not_saved()->set_why(std::move(x.why)); },
                 [&](remote::RunDefined& x) {
                   RunDefined& run = *to.mutable_run_defined();
                   run.set_run(x.run);
                   run.set_base(x.base);
                   run.set_first(x.first);
                   run.set_last(x.last);
                   run.set_middle(std::move(x.middle));
                   run.set_same_tokens(x.same_tokens);
                   run.set_tokens(std::move(x.tokens));
                   run.mutable_forgotten()->Add(x.forgotten.begin(), x.forgotten.end());
                 },
                 [&](remote::RoutingDefined& x) {
                   RoutingDefined& routing = *to.mutable_routing_defined();
                   routing.set_layer(x.layer);
                   routing.set_beside(x.beside);
                   routing.set_same_tokens(x.same_tokens);
                   routing.set_rest(std::move(x.rest));
                 },
                 [&](remote::Shown& x) {
                   Shown& shown = *to.mutable_shown();
                   shown.set_run(x.run);
                   shown.set_beside(x.beside);
                   shown.set_routed(x.routed);
                   shown.set_snapshot(std::move(x.snapshot));
                 },
                 [&](remote::Found& x) {
                   Found& found = *to.mutable_found();
                   found.set_asker(x.asker);
                   found.set_question(x.question);
                   found.set_finding(std::move(x.finding));
                 },
                 [&](remote::FactsTold& x) {
                   to.mutable_facts()->set_no_text(std::move(x.no_text));
                   to.mutable_facts()->set_vocab(x.vocab);
                 },
                 [&](remote::Described& x) {
                   Described& described = *to.mutable_described();
                   described.set_device(std::move(x.device));
                   described.set_config(std::move(x.config));
                   described.set_digest(std::move(x.digest));
                   described.set_prompt(std::move(x.prompt));
                   described.set_why_no_prompt(std::move(x.why_no_prompt));
                   described.set_weight(std::move(x.weight));
                 },
                 [&](remote::PromptMade& x) { to.mutable_prompt_made()->set_prompt(std::move(x.prompt)); },
                 [&](remote::Decoded& x) { to.mutable_decoded()->set_text(std::move(x.text)); },
                 [&](remote::Worked& x) { to.mutable_worked()->set_found(std::move(x.found)); },
             },
             event.told);
  return to;
}

remote::Event from_proto(Event&& from) {
  remote::Event to{.number = from.number(), .heard = from.heard(), .id = from.id()};
  switch (from.told_case()) {
    case Event::kWelcome: {
      Welcome& x = *from.mutable_welcome();
      to.told = remote::Welcome{std::move(*x.mutable_session()), x.resumed(), std::move(*x.mutable_version())};
      break;
    }
    case Event::kProgressed: {
      Progressed& x = *from.mutable_progressed();
      to.told = remote::Progressed{x.fraction(), std::move(*x.mutable_what())};
      break;
    }
    case Event::kRunShown:
      to.told = remote::RunShown{from.run_shown().run()};
      break;
    case Event::kFailed:
      to.told = remote::Failed{std::move(*from.mutable_failed()->mutable_failure())};
      break;
    case Event::kDone:
      to.told = remote::Done{};
      break;
    case Event::kRemarked: {
      Remarked& x = *from.mutable_remarked();
      const bool known = x.about() <= static_cast<std::uint32_t>(About::not_finite);
      if (known) to.told = remote::Remarked{static_cast<About>(x.about()), std::move(*x.mutable_text())};
      break;
    }
    case Event::kBranches: {
      BranchesChanged& x = *from.mutable_branches();
      to.told = remote::BranchesChanged{std::move(*x.mutable_tree()), {x.runs().begin(), x.runs().end()}};
      break;
    }
    case Event::kPlaced:
      to.told = remote::Placed{std::move(*from.mutable_placed()->mutable_place())};
      break;
    case Event::kSaved:
      to.told = remote::Saved{};
      break;
    case Event::kNotSaved:
      to.told = remote::NotSaved{std::move(*from.mutable_not_saved()->mutable_why())};
      break;
    case Event::kRunDefined: {
      RunDefined& x = *from.mutable_run_defined();
      to.told = remote::RunDefined{.run = x.run(),
                                   .base = x.base(),
                                   .first = x.first(),
                                   .last = x.last(),
                                   .middle = std::move(*x.mutable_middle()),
                                   .same_tokens = x.same_tokens(),
                                   .tokens = std::move(*x.mutable_tokens()),
                                   .forgotten = {x.forgotten().begin(), x.forgotten().end()}};
      break;
    }
    case Event::kRoutingDefined: {
      RoutingDefined& x = *from.mutable_routing_defined();
      to.told = remote::RoutingDefined{x.layer(), x.beside(), x.same_tokens(), std::move(*x.mutable_rest())};
      break;
    }
    case Event::kShown: {
      Shown& x = *from.mutable_shown();
      to.told = remote::Shown{x.run(), x.beside(), x.routed(), std::move(*x.mutable_snapshot())};
      break;
    }
    case Event::kFound: {
      Found& x = *from.mutable_found();
      to.told = remote::Found{x.asker(), x.question(), std::move(*x.mutable_finding())};
      break;
    }
    case Event::kFacts: {
      FactsTold& x = *from.mutable_facts();
      to.told = remote::FactsTold{std::move(*x.mutable_no_text()), x.vocab()};
      break;
    }
    case Event::kDescribed: {
      Described& x = *from.mutable_described();
      to.told = remote::Described{.device = std::move(*x.mutable_device()),
                                  .config = std::move(*x.mutable_config()),
                                  .digest = std::move(*x.mutable_digest()),
                                  .prompt = std::move(*x.mutable_prompt()),
                                  .why_no_prompt = std::move(*x.mutable_why_no_prompt()),
                                  .weight = std::move(*x.mutable_weight())};
      break;
    }
    case Event::kPromptMade:
      to.told = remote::PromptMade{std::move(*from.mutable_prompt_made()->mutable_prompt())};
      break;
    case Event::kDecoded:
      to.told = remote::Decoded{std::move(*from.mutable_decoded()->mutable_text())};
      break;
    case Event::kWorked:
      to.told = remote::Worked{std::move(*from.mutable_worked()->mutable_found())};
      break;
    case Event::TOLD_NOT_SET:
      break;
  }
  return to;
}

std::string bytes_of(const remote::Request& request) { return to_proto(request).SerializeAsString(); }
std::string bytes_of(const remote::Event& event) { return to_proto(event).SerializeAsString(); }

bool read(std::string_view bytes, remote::Request& request) {
  Request message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  request = from_proto(std::move(message));
  return true;
}

bool read(std::string_view bytes, remote::Event& event) {
  Event message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return false;
  event = from_proto(std::move(message));
  return true;
}

}  // namespace statescope::remote::proto
