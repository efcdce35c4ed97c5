// Browsers without a window: what each makes of a page, as HTML.
#pragma once

#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QStandardPaths>
#include <QTcpServer>
#include <QTcpSocket>
#include <QTemporaryDir>
#include <QThread>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace statescope::test {

inline constexpr int browser_patience_ms = 120'000;

inline QString browser_called(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const QString path = QStandardPaths::findExecutable(name); !path.isEmpty()) return path;
  return {};
}

class Browser {
 public:
  virtual ~Browser() = default;
  virtual std::string name() const = 0;
  /// Of the page at this address, once it says that it is ready. Throws std::runtime_error.
  virtual std::string dom(const std::string& address) = 0;
  /// Of the window in which it comes.
  int width = 1200;
};

class Chromium : public Browser {
 public:
  explicit Chromium(QString program) : program_(std::move(program)) {}
  std::string name() const override { return "Chromium"; }
  std::string dom(const std::string& address) override {
    QProcess process;
    process.setProcessChannelMode(QProcess::SeparateChannels);
    process.start(
        program_,
        {"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--user-data-dir=" + folder_.filePath("profile"),
         "--dump-dom", QStringLiteral("--window-size=%1,900").arg(width), "--virtual-time-budget=20000", QString::fromStdString(address)});
    if (!process.waitForFinished(browser_patience_ms)) throw std::runtime_error("Chromium does not end");
    std::string dom = process.readAllStandardOutput().toStdString();
    if (dom.find("data-ready=\"yes\"") == std::string::npos)
      throw std::runtime_error("the page is not ready: " + process.readAllStandardError().toStdString().substr(0, 2000));
    return dom;
  }

 private:
  QString program_;
  QTemporaryDir folder_;
};

/// Driven by Marionette, its own remote protocol: each message is its length, a colon and a JSON array.
class Firefox : public Browser {
 public:
  explicit Firefox(const QString& program) {
    const quint16 port = free_port();
    QFile settings(folder_.filePath("user.js"));
    if (!settings.open(QIODevice::WriteOnly)) throw std::runtime_error("no profile can be written");
    settings.write(QStringLiteral("user_pref(\"marionette.port\", %1);\nuser_pref(\"browser.shell.checkDefaultBrowser\", false);\n"
                                  "user_pref(\"datareporting.policy.dataSubmissionEnabled\", false);\n"
                                  "user_pref(\"network.dns.disabled\", true);\n")
                       .arg(port)
                       .toUtf8());
    settings.close();
    process_.setStandardOutputFile(QProcess::nullDevice());
    process_.setStandardErrorFile(QProcess::nullDevice());
    process_.start(program,
                   {"--headless", "--no-remote", "--marionette", "--profile", folder_.path(), "--width", "1200", "--height", "900"});
    QElapsedTimer waited;
    waited.start();
    do {
      QThread::msleep(50);
      socket_.connectToHost("127.0.0.1", port);
    } while (!socket_.waitForConnected(1000) && waited.elapsed() < browser_patience_ms);
    read();  // who it is
    ask("WebDriver:NewSession", {});
  }
  ~Firefox() override {
    process_.terminate();
    if (!process_.waitForFinished(10'000)) process_.kill();
    process_.waitForFinished();
  }
  std::string name() const override { return "Firefox"; }
  std::string dom(const std::string& address) override {
    ask("WebDriver:SetWindowRect", {{"width", width}, {"height", 900}});
    ask("WebDriver:Navigate", {{"url", "about:blank"}});  // another place on the same page loads nothing
    ask("WebDriver:Navigate", {{"url", QString::fromStdString(address)}});
    QElapsedTimer waited;
    waited.start();
    while (value_of("return document.documentElement.dataset.ready || ''") != "yes") {
      if (waited.elapsed() > browser_patience_ms) throw std::runtime_error("the page is not ready");
      QThread::msleep(20);
    }
    if (value_of("return String(performance.getEntriesByType('resource').length)") != "0")
      throw std::runtime_error("the page fetches something");
    return value_of("return document.documentElement.outerHTML").toStdString();
  }

 private:
  static quint16 free_port() {
    QTcpServer server;
    server.listen(QHostAddress::LocalHost);
    return server.serverPort();
  }
  QString value_of(const QString& script) {
    return ask("WebDriver:ExecuteScript", {{"script", script}, {"args", QJsonArray()}}).toObject()["value"].toString();
  }
  QJsonValue ask(const QString& command, const QJsonObject& parameters) {
    const QByteArray message = QJsonDocument(QJsonArray{0, ++number_, command, parameters}).toJson(QJsonDocument::Compact);
    socket_.write(QByteArray::number(message.size()) + ':' + message);
    const QJsonArray answer = read().array();  // 1, number, error, result
    if (!answer.at(2).isNull()) throw std::runtime_error(answer.at(2).toObject()["message"].toString().toStdString());
    return answer.at(3);
  }
  QJsonDocument read() {
    const auto bytes_until = [this](const auto& enough) {
      while (!enough())
        if (!socket_.waitForReadyRead(browser_patience_ms)) throw std::runtime_error("Firefox does not answer");
    };
    QByteArray digits;
    for (char letter = 0; letter != ':'; digits += letter != ':' ? QByteArray(1, letter) : QByteArray()) {
      bytes_until([this] { return socket_.bytesAvailable() > 0; });
      socket_.getChar(&letter);
    }
    const qint64 length = digits.toLongLong();
    bytes_until([this, length] { return socket_.bytesAvailable() >= length; });
    return QJsonDocument::fromJson(socket_.read(length));
  }

  QTemporaryDir folder_;
  QProcess process_;
  QTcpSocket socket_;
  int number_ = 0;
};

/// Those of this machine; each that is missing comes into `missing`.
inline std::vector<std::unique_ptr<Browser>> browsers(std::vector<std::string>& missing) {
  std::vector<std::unique_ptr<Browser>> all;
  if (const QString path = browser_called({"chromium", "chromium-browser", "google-chrome"}); !path.isEmpty())
    all.push_back(std::make_unique<Chromium>(path));
  else
    missing.emplace_back("Chromium");
  if (const QString path = browser_called({"firefox-esr", "firefox"}); !path.isEmpty())
    all.push_back(std::make_unique<Firefox>(path));
  else
    missing.emplace_back("Firefox");
  return all;
}

}  // namespace statescope::test
