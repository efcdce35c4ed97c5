#pragma once

#include <QCoreApplication>
#include <functional>
#include <utility>

namespace statescope {

/// Calls `work` on the thread of the running QApplication, later.
inline void post(std::function<void()> work) { QMetaObject::invokeMethod(qApp, std::move(work), Qt::QueuedConnection); }

}  // namespace statescope
