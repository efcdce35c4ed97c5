// How many directions a memory uses: singular values of every head's state, their entropy and effective rank, now and along the run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "views/shading.h"

namespace statescope {

enum class SpectrumMode { values, by_rank, partitions, rank_series, entropy_series, norm_series };

struct HeadSpectrum {
  std::int64_t head = 0;
  std::vector<float> sigma;  // [n] descending
  float entropy = 0, rank = 0, rank_of_squares = 0;
};

struct SpectrumData {
  Message message;  // of the empty state
  SpectrumMode mode = SpectrumMode::values;
  std::string title;                  // the answer in a sentence
  std::int64_t chosen = 0;            // head
  std::int64_t heads = 0, count = 0;  // H; n singular values a head

  std::vector<HeadSpectrum> spectra;  // in the order shown
  ValueAxis sigma_axis;
  std::int64_t below = 0;  // σ too small for the axis: drawn at its foot

  std::int64_t partitions = 0;                           // P
  std::vector<float> partition_rank, partition_entropy;  // [H, P]
  std::vector<std::string> partition_names;
  std::optional<Coloring> coloring;  // of partition_rank, where it is drawn as cells

  TokenAxis tokens;
  std::vector<std::vector<float>> series;  // [H][n]
  std::string series_name;
  ValueAxis series_axis;
  std::int64_t run = 0;  // its tokens

  bool along_the_run() const { return mode >= SpectrumMode::rank_series; }
};

SpectrumData build_spectrum(const Snapshot& snapshot, const Cursor& cursor, const Findings& findings, SpectrumMode mode,
                            const RangeChoice& range = {});
void draw(const SpectrumData& data, Canvas& canvas, Rect area, const Frame& frame);

std::unique_ptr<View> make_spectrum();

}  // namespace statescope
