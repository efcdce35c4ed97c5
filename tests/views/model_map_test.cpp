#include "views/model_map.h"
#include "views/sheets.h"

#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"

namespace statescope::model_map_test {

TEST_CASE("model map: from the embedding to the head, each layer with what it remembers with") {
  const Sample sample({.tokens = 5});
  const ModelMapData data = build_model_map(sample.attention_at(2), {});
  REQUIRE(data.boxes.size() == 4);
  CHECK((data.boxes[0].name == "embedding" && data.boxes[0].layer == -1));
  CHECK((data.boxes[1].name == "0  sse" && data.boxes[1].sign == LayerSign::partitions && !data.boxes[1].chosen));
  CHECK(data.boxes[1].identities == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(data.boxes[1].size == "2 heads of 16 × 16, shared and 4 partitions");
  CHECK((data.boxes[2].sign == LayerSign::tokens && data.boxes[2].chosen));
  CHECK(data.boxes[2].size == "keys and values of every token");
  CHECK(data.boxes[3].name == "unembedding");
  CHECK(data.counting == "The size of each layer has not been worked out yet");
  CHECK(build_model_map(Sample({.tokens = 5, .partitions = 0}).at(2), {}).boxes[1].sign == LayerSign::matrix);
  CHECK(build_model_map({}, {}).message);
}

TEST_CASE("model map: experts are counted, and a layer without memory has no sign of one") {
  Snapshot snapshot = Sample({.tokens = 5, .experts = 16}).at(2);
  RunInfo run = *snapshot.run;
  run.model.layers.push_back({.mixer = "experts", .memory = "no memory", .slot_names = {}, .experts = 8, .chosen_experts = 3});
  snapshot.run = std::make_shared<const RunInfo>(run);
  const ModelMapData data = build_model_map(snapshot, {});
  CHECK(data.boxes[2].size == "keys and values of every token; 16 experts, 4 a token");
  CHECK(data.boxes[3].size == "8 experts, 3 a token");
  CHECK(data.boxes[3].sign == LayerSign::none);
}

TEST_CASE("model map: sizes and tensors come with the answer") {
  const Sample sample({.tokens = 5});
  const auto view = make_model_map();
  const Snapshot snapshot = sample.at(2);
  CHECK(view->questions(snapshot, {}) == std::vector<Question>{ModelMapQuestion{}});
  const Findings findings = sample_findings(view->questions(snapshot, {}), snapshot);
  const ModelMapData data = build_model_map(snapshot, findings);
  CHECK(data.counting.empty());
  CHECK((data.boxes[1].parameters == "1.23 M parameters" && data.boxes[1].state == "state 4.1 kB"));
  CHECK(data.boxes[2].state == "4.1 kB a token");
  CHECK(data.tensors.size() == 4);
  view->build(snapshot, {}, findings);
  CHECK(view->on_hit({ModelMapSheets::parts, 2}).layer == 1);
  CHECK_FALSE(view->on_hit({ModelMapSheets::parts, 0}).layer);
  CHECK(view->tooltip({ModelMapSheets::tensors, 1})
            .starts_with("model.layers.0.attn.k_proj.weight\nstored as = bfloat16\nextents = [1024, 512]\nbytes = 1048576"));
  CHECK(view->table().rows.size() == 11);
  CHECK(view->tooltip({ModelMapSheets::program, 2}).starts_with("operation 3\ncomputes = y [64] = readout · [64, 32]ᵀ"));
  CHECK(view->describe().find("chosen: layer 0  sse, decayed outer product, 2 heads of 16 × 16") != std::string::npos);
}

TEST_CASE("model map: of several devices each layer says where it lives, and the title why") {
  const Sample sample({.tokens = 5});
  Snapshot snapshot = sample.at(2);
  RunInfo run = *snapshot.run;
  run.model.placement = {"cuda:0: layer 0", "cpu: layer 1; the other devices have no room for them"};
  run.model.layers[0].device = "cuda:0";
  run.model.layers[1].device = "cpu";
  snapshot.run = std::make_shared<const RunInfo>(run);
  const ModelMapData data = build_model_map(snapshot, {});
  CHECK(data.boxes[1].name == "0  sse · cuda:0");
  CHECK(data.boxes[2].name.ends_with(" · cpu"));
  CHECK(data.device == "cuda:0: layer 0; cpu: layer 1; the other devices have no room for them");
}

TEST_CASE("counts and bytes are in thousands") {
  CHECK(count_text(987) == "987");
  CHECK(count_text(1234567) == "1.23 M");
  CHECK(count_text(999600) == "1 M");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(22016) == "22 kB");
  CHECK(bytes_text(1300000000) == "1.3 GB");
}

}  // namespace statescope::model_map_test
