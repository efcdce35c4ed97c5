// Open MPI behind RankLink, in a module of its own: who starts the program by itself needs none of it.
#define OMPI_SKIP_MPICXX 1  // C++ bindings, which nothing here uses and no library has
#include <mpi.h>

#include <cstring>

#include "app/ranks/link.h"

namespace statescope {
namespace {

class MpiLink : public RankLink {
 public:
  MpiLink() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }

  int size() const override {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
  }
  // The kind is the tag; the job's number comes before the bytes.
  void send(int to, const RankMessage& message) override {
    std::string all(sizeof(message.job), '\0');
    std::memcpy(all.data(), &message.job, sizeof(message.job));
    all += message.bytes;
    MPI_Send(all.data(), static_cast<int>(all.size()), MPI_BYTE, to, static_cast<int>(message.kind), MPI_COMM_WORLD);
  }
  std::optional<RankMessage> receive() override {
    int has_arrived = 0, size = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &has_arrived, &status) != MPI_SUCCESS || has_arrived == 0) return {};
    MPI_Get_count(&status, MPI_BYTE, &size);
    std::string all(static_cast<std::size_t>(size), '\0');
    MPI_Recv(all.data(), size, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    RankMessage message{.kind = static_cast<RankMessage::Kind>(status.MPI_TAG), .from = status.MPI_SOURCE};
    std::memcpy(&message.job, all.data(), sizeof(message.job));
    message.bytes = all.substr(sizeof(message.job));
    return message;
  }
  void finish() override { MPI_Finalize(); }
};

}  // namespace
}  // namespace statescope

extern "C" statescope::RankLink* statescope_make_rank_link() { return new statescope::MpiLink; }
