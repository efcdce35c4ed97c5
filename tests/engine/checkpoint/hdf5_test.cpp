// HDF5 checkpoints as other programs write them, and every way in which a file can lead astray.
#include <array>
#include <cstdlib>
#include <numeric>

#include "tests/engine/checkpoint/checkpoint_files.h"
#include "tests/source.h"

namespace statescope::hdf5_test {
using namespace statescope::test;

namespace {

const std::vector<float> six{1, 2, 3, 4, 5, 6};
const std::vector<std::uint16_t> halves{0x3c00, 0x7c00, 0x0001, 0xfe00};

hid_t float_of_16_bits(std::size_t exponent, std::size_t mantissa, std::size_t bias) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, bias);
  return type;
}

hid_t chunked(const std::vector<hsize_t>& chunk, bool compressed) {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  if (compressed) H5Pset_shuffle(creation), H5Pset_deflate(creation, 1), H5Pset_fletcher32(creation);
  return creation;
}

/// A checkpoint whose group /tensors `fill` fills; what opening it says.
std::string error_with(const std::function<void(const Hdf5File&, hid_t)>& fill) {
  const TemporaryFolder folder;
  {
    const Hdf5File file(folder / "model.h5");
    file.head();
    fill(file, file.group("tensors"));
  }
  return open_error(folder / "model.h5");
}

std::string error_with_root(const std::function<void(const Hdf5File&)>& fill) {
  const TemporaryFolder folder;
  { fill(Hdf5File(folder / "model.h5")); }
  return open_error(folder / "model.h5");
}

#define CHECK_SAYS(expression, part)             \
  do {                                           \
    const std::string said = (expression);       \
    INFO(said);                                  \
    CHECK(said.find(part) != std::string::npos); \
  } while (false)

}  // namespace

TEST_CASE("every type and layout that a checkpoint may have is read as it is") {
  const TemporaryFolder folder;
  std::vector<float> many(3000);
  std::iota(many.begin(), many.end(), 0.0f);
  for (const H5F_libver_t version : {H5F_LIBVER_EARLIEST, H5F_LIBVER_V110}) {
    {
      const Hdf5File file(folder / "model.v1.h5", version);
      file.head();
      const hid_t tensors = file.group("tensors"), tokenizer = file.group("tokenizer"), provenance = file.group("provenance");
      file.dataset(tensors, "contiguous.weight", H5T_IEEE_F32LE, {2, 3}, six.data());
      file.dataset(tensors, "chunked", H5T_IEEE_F32LE, {30, 100}, many.data(), chunked({7, 100}, false));
      file.dataset(tensors, "compressed", H5T_IEEE_F32LE, {30, 100}, many.data(), chunked({7, 33}, true));
      const hid_t compact = H5Pcreate(H5P_DATASET_CREATE);
      H5Pset_layout(compact, H5D_COMPACT);
      file.dataset(tensors, "compact", H5T_IEEE_F32LE, {6}, six.data(), compact);
      const hid_t scalar = H5Screate(H5S_SCALAR),
                  set = H5Dcreate2(tensors, "scalar", H5T_IEEE_F32LE, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      H5Dwrite(set, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, six.data());
      const hid_t half = float_of_16_bits(5, 10, 15), brain = float_of_16_bits(8, 7, 127);
      file.dataset(tensors, "half", half, {4}, halves.data());
      file.dataset(tensors, "brain", brain, {4}, halves.data());
      file.dataset(tensors, "brain.named", brain, {4}, halves.data(), H5P_DEFAULT, "bfloat16");
      file.dataset(tensors, "brain.as.integers", H5T_STD_U16LE, {4}, halves.data(), H5P_DEFAULT, "bfloat16");
      file.dataset(tokenizer, "tokenizer.json", H5T_STD_U8LE, {3}, "{ }");
      file.dataset(provenance, "empty", H5T_STD_U8LE, {0}, nullptr);
      file.dataset(provenance, "packed", H5T_STD_U8LE, {3}, "abc", chunked({3}, true));
      H5Lcreate_hard(tensors, "contiguous.weight", tensors, "tied", H5P_DEFAULT, H5P_DEFAULT);
    }
    const auto checkpoint = open_checkpoint(folder / "model.v1.h5");
    CHECK(checkpoint->name == "model.v1");
    CHECK(checkpoint->config == R"({"model_type": "gla"})");
    CHECK(checkpoint->tensors.size() == 10);
    CHECK(raw(*checkpoint->find("contiguous.weight")) == raw(six));
    CHECK(checkpoint->find("contiguous.weight")->shape == std::vector<std::int64_t>{2, 3});
    CHECK(checkpoint->find("tied")->data == checkpoint->find("contiguous.weight")->data);
    CHECK(raw(*checkpoint->find("chunked")) == raw(many));
    CHECK(raw(*checkpoint->find("compressed")) == raw(many));
    CHECK(raw(*checkpoint->find("compact")) == raw(six));
    CHECK(checkpoint->find("scalar")->shape.empty());
    CHECK(raw(*checkpoint->find("scalar")) == raw(std::vector<float>{1}));
    CHECK(checkpoint->find("half")->dtype == DType::f16);
    for (const char* name : {"half", "brain", "brain.named", "brain.as.integers"}) {
      CHECK(raw(*checkpoint->find(name)) == raw(halves));
      CHECK((checkpoint->find(name)->dtype == DType::bf16) == (name[0] == 'b'));
    }
    CHECK(checkpoint->tokenizer.at("tokenizer.json") == "{ }");
    CHECK(checkpoint->provenance == std::map<std::string, std::string>{{"empty", ""}, {"packed", "abc"}});
  }
}

TEST_CASE("tensors of another type are refused by name and type") {
  const auto error_of_type = [](hid_t type, const char* dtype = nullptr) {
    return error_with([&](const Hdf5File& file, hid_t tensors) {
      const std::vector<double> zeros(16);
      file.dataset(tensors, "w", type, {4}, zeros.data(), H5P_DEFAULT, dtype);
    });
  };
  CHECK_SAYS(error_of_type(H5T_IEEE_F32BE), "tensor 'w' is big-endian float32");
  CHECK_SAYS(error_of_type(H5T_IEEE_F64LE), "tensor 'w' is float64");
  CHECK_SAYS(error_of_type(H5T_STD_I32LE), "tensor 'w' is int32");
  CHECK_SAYS(error_of_type(H5T_STD_U16LE), "tensor 'w' is uint16");
  CHECK_SAYS(error_of_type(H5T_STD_U16LE, "float16"), "tensor 'w' is uint16");
  CHECK_SAYS(error_of_type(float_of_16_bits(5, 10, 15), "bfloat16"), "says that it is bfloat16");
  CHECK_SAYS(error_of_type(H5T_STD_REF_OBJ), "tensor 'w' is reference");
  CHECK_SAYS(error_of_type(H5T_STD_REF_DSETREG), "tensor 'w' is reference");
  CHECK_SAYS(error_of_type(H5T_C_S1), "tensor 'w' is string");
  CHECK_SAYS(error_of_type(H5Tvlen_create(H5T_IEEE_F32LE)), "tensor 'w' is variable-length list");
  const hid_t compound = H5Tcreate(H5T_COMPOUND, 4);
  H5Tinsert(compound, "x", 0, H5T_IEEE_F32LE);
  CHECK_SAYS(error_of_type(compound), "tensor 'w' is compound");
}

TEST_CASE("links that lead elsewhere are refused, not followed") {
  const auto link = [](auto create) { return error_with([&](const Hdf5File& file, hid_t tensors) { create(file.file, tensors); }); };
  CHECK_SAYS(link([](hid_t, hid_t t) { H5Lcreate_external("/etc/passwd", "/w", t, "w", H5P_DEFAULT, H5P_DEFAULT); }),
             "'w' is a soft or external link");
  CHECK_SAYS(link([](hid_t, hid_t t) { H5Lcreate_soft("/tensors/v", t, "w", H5P_DEFAULT, H5P_DEFAULT); }),
             "'w' is a soft or external link");
  CHECK_SAYS(link([](hid_t f, hid_t t) { H5Lcreate_hard(f, "tensors", t, "again", H5P_DEFAULT, H5P_DEFAULT); }),
             "'again' is not a dataset");
  CHECK_SAYS(link([](hid_t f, hid_t t) { H5Lcreate_hard(f, "/", t, "root", H5P_DEFAULT, H5P_DEFAULT); }), "'root' is not a dataset");
  CHECK_SAYS(link([](hid_t, hid_t t) { H5Tcommit2(t, "type", H5Tcopy(H5T_IEEE_F32LE), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT); }),
             "'type' is not a dataset");
  CHECK_SAYS(link([](hid_t f, hid_t) { H5Lcreate_soft("/tensors", f, "tokenizer", H5P_DEFAULT, H5P_DEFAULT); }),
             "'tokenizer' is a soft or external link");
  CHECK_SAYS(error_with_root([](const Hdf5File& file) {
               file.head();
               H5Lcreate_external("/etc/passwd", "/", file.file, "tensors", H5P_DEFAULT, H5P_DEFAULT);
             }),
             "'tensors' is a soft or external link");
}

TEST_CASE("data that lies in other files is refused") {
  CHECK_SAYS(error_with([](const Hdf5File& file, hid_t tensors) {
               const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
               H5Pset_external(creation, "/etc/passwd", 0, 24);
               file.dataset(tensors, "w", H5T_IEEE_F32LE, {6}, nullptr, creation);
             }),
             "'w' keeps its data in other files");
  CHECK_SAYS(error_with([](const Hdf5File& file, hid_t tensors) {
               const hsize_t six_elements = 6;
               const hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &six_elements, nullptr);
               H5Pset_virtual(creation, space, "/etc/passwd", "/w", space);
               file.dataset(tensors, "w", H5T_IEEE_F32LE, {6}, nullptr, creation);
             }),
             "'w' keeps its data in other files");
}

TEST_CASE("sizes that the file cannot hold are refused before anything is allocated") {
  const auto declared = [](const std::vector<hsize_t>& extents, hid_t creation, hid_t type = H5T_IEEE_F32LE) {
    return error_with([&](const Hdf5File& file, hid_t tensors) { file.dataset(tensors, "w", type, extents, nullptr, creation); });
  };
  const hsize_t million = 1000000;
  CHECK_SAYS(declared({million, million, million / 1000}, chunked({1, 1000, 1000}, false)), "more than this file can hold");
  CHECK_SAYS(declared({million, million}, chunked({1000, million}, true)), "more than this file can hold");
  CHECK_SAYS(declared({8, 8}, chunked({8, 8}, true)), "declares 256 bytes but stores 0");
  CHECK_SAYS(declared({million * million, million * million}, chunked({1, 1}, false)), "more elements than there can be");
  CHECK_SAYS(declared({8, 8}, H5P_DEFAULT), "'w' was never written");
  CHECK_SAYS(declared({8, 0}, H5P_DEFAULT), "an axis of 0 elements");
  CHECK_SAYS(declared({1, 1, 1, 1, 1, 1, 1, 1, 1}, H5P_DEFAULT), "has 9 axes");
  CHECK_SAYS(error_with([&](const Hdf5File& file, hid_t tensors) {  // one written chunk in a sea of unwritten ones
               const hid_t creation = chunked({1024}, false);
               file.dataset(tensors, "w", H5T_IEEE_F32LE, {1 << 22}, nullptr, creation);
               const hid_t set = H5Dopen2(tensors, "w", H5P_DEFAULT), space = H5Dget_space(set);
               const hsize_t start = 0, count = 6;
               H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &count, nullptr);
               H5Dwrite(set, H5T_IEEE_F32LE, H5Screate_simple(1, &count, nullptr), space, H5P_DEFAULT, six.data());
             }),
             "declares 16777216 bytes but stores 4096");
  CHECK_SAYS(error_with([](const Hdf5File& file, hid_t tensors) {
               H5Dcreate2(tensors, "w", H5T_IEEE_F32LE, H5Screate(H5S_NULL), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
               file.text(tensors, "note", "null space");
             }),
             "'w' has no elements");
}

TEST_CASE("compression that this program does not know is refused by number") {
  CHECK_SAYS(error_with([](const Hdf5File& file, hid_t tensors) {
               const hid_t creation = chunked({6}, false);
               H5Pset_scaleoffset(creation, H5Z_SO_FLOAT_DSCALE, 2);
               file.dataset(tensors, "w", H5T_IEEE_F32LE, {6}, six.data(), creation);
             }),
             "compressed with filter 6");
}

TEST_CASE("a file without what makes it a checkpoint is refused, saying what is missing") {
  const std::string format = "statescope-checkpoint";
  CHECK_SAYS(error_with_root([](const Hdf5File&) {}), "is an HDF5 file but no checkpoint");
  CHECK_SAYS(error_with_root([](const Hdf5File& f) { f.text(f.file, "format", "other"); }), "is an HDF5 file but no checkpoint");
  CHECK_SAYS(error_with_root([&](const Hdf5File& f) { f.text(f.file, "format", format); }), "has no attribute version");
  CHECK_SAYS(error_with_root([&](const Hdf5File& f) { f.text(f.file, "format", format), f.text(f.file, "version", "1"); }),
             "version is not an integer");
  CHECK_SAYS(error_with_root([&](const Hdf5File& f) { f.text(f.file, "format", format), f.version(2); }), "is of version 2");
  CHECK_SAYS(error_with_root([&](const Hdf5File& f) { f.text(f.file, "format", format), f.version(1); }), "has no attribute config");
  CHECK_SAYS(error_with_root([](const Hdf5File& f) { f.head(); }), "has no group /tensors");
  CHECK_SAYS(error_with_root([](const Hdf5File& f) {
               f.head();
               f.dataset(f.file, "tensors", H5T_IEEE_F32LE, {6}, six.data());
             }),
             "'tensors' is not a group");
  CHECK_SAYS(error_with([](const Hdf5File&, hid_t) {}), "has no tensors");
  CHECK_SAYS(error_with_root([](const Hdf5File& f) {
               f.head("");
               f.dataset(f.group("tensors"), "w", H5T_IEEE_F32LE, {6}, six.data());
             }),
             "config.json is empty");
  CHECK_SAYS(error_with_root([&](const Hdf5File& f) {
               f.text(f.file, "format", format), f.version(1);
               const hid_t space = H5Screate(H5S_SCALAR);
               H5Acreate2(f.file, "config", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT);
             }),
             "attribute config is float32; one string was expected");
}

TEST_CASE("names that no file or tensor has are refused") {
  const auto named = [](const char* name) {
    return error_with([&](const Hdf5File& file, hid_t tensors) { file.dataset(tensors, name, H5T_IEEE_F32LE, {6}, six.data()); });
  };
  CHECK_SAYS(named("a\nb"), "tensor name 'a b'");
  CHECK_SAYS(named("a\xff"), "tensor name");
  CHECK_SAYS(named(std::string(2000, 'x').c_str()), "tensor name");
  const auto file_named = [](const char* name, hid_t type) {
    return error_with([&](const Hdf5File& file, hid_t tensors) {
      file.dataset(tensors, "w", H5T_IEEE_F32LE, {6}, six.data());
      file.dataset(file.group("provenance"), name, type, {6}, six.data());
    });
  };
  CHECK_SAYS(file_named("..x", H5T_STD_U8LE), "'..x' is not the plain name of a file");
  CHECK_SAYS(file_named("recipe", H5T_IEEE_F32LE), "/provenance/recipe is float32 of 1 axes");
}

TEST_CASE("the errors of the HDF5 library come in its own words, and not on the terminal") {
  const TemporaryFolder folder;
  {
    const Hdf5File file(folder / "model.h5");
    file.head();
  }
  const std::string whole = read_bytes(folder / "model.h5");
  write_bytes(folder / "cut.h5", whole.substr(0, whole.size() - 1));
  CHECK_SAYS(open_error(folder / "cut.h5"), "truncated file");
}

TEST_CASE("h5py reads our files and we read those of h5py") {
  if (std::system("python3 -c 'import h5py' 2>/dev/null") != 0) {
    WARN("skipped: no h5py");
    return;
  }
  const TemporaryFolder folder;
  const std::string script = "python3 " + from_source("tests/engine/checkpoint/write_h5py.py ");
  REQUIRE(std::system((script + "write " + (folder / "theirs.h5").string()).c_str()) == 0);
  const auto theirs = open_checkpoint(folder / "theirs.h5");
  CHECK(theirs->config == R"({"model_type": "gla"})");
  CHECK(raw(*theirs->find("a.weight")) == raw(six));
  CHECK(raw(*theirs->find("b.weight")) == raw(std::vector<std::uint16_t>{0x3c00, 0xc000}));
  CHECK(theirs->find("c.weight")->dtype == DType::bf16);
  CHECK(raw(*theirs->find("c.weight")) == raw(std::vector<std::uint16_t>{0x3f80, 0xc000}));
  CHECK(theirs->find("d.weight")->shape == std::vector<std::int64_t>{300, 80});
  CHECK(theirs->tokenizer.at("tokenizer.json") == R"({"a": 0})");

  write_checkpoint(*theirs, folder / "ours.h5");
  CHECK(std::system((script + "read " + (folder / "ours.h5").string()).c_str()) == 0);
}

}  // namespace statescope::hdf5_test
