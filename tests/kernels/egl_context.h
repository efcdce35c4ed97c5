// An OpenGL context without a window, on the GPU that computes. EGL is loaded here and by nothing else: where it is missing a test is
// skipped.
#pragma once

#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <dlfcn.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace statescope::testing {

class EglContext {
 public:
  /// Of CUDA device `index`, current on this thread. Null, and `why` says why, where there is none.
  static std::unique_ptr<EglContext> on_cuda_device(int index, std::string& why) {
    auto context = std::unique_ptr<EglContext>(new EglContext);
    why = context->open(index);
    return why.empty() ? std::move(context) : nullptr;
  }
  ~EglContext() {
    if (display_ == EGL_NO_DISPLAY) return;
    function<EGLBoolean(EGLDisplay, EGLSurface, EGLSurface, EGLContext_)>("eglMakeCurrent")(display_, EGL_NO_SURFACE, EGL_NO_SURFACE,
                                                                                            EGL_NO_CONTEXT);
    if (context_ != EGL_NO_CONTEXT) function<EGLBoolean(EGLDisplay, EGLContext_)>("eglDestroyContext")(display_, context_);
    function<EGLBoolean(EGLDisplay)>("eglTerminate")(display_);
  }
  EglContext(const EglContext&) = delete;
  EglContext& operator=(const EglContext&) = delete;

  /// An OpenGL function by its name: gl<PFNGLGENBUFFERSPROC>("glGenBuffers").
  template <class Pointer>
  Pointer gl(const char* name) const {
    return reinterpret_cast<Pointer>(address_(name));
  }

 private:
  using EGLContext_ = ::EGLContext;
  EglContext() = default;

  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(address_(name));
  }

  std::string open(int index) {
    library_ = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library_) return "there is no libEGL.so.1";
    address_ = reinterpret_cast<Address*>(dlsym(library_, "eglGetProcAddress"));
    const EGLDeviceEXT device = device_of(index);
    if (!device) return "EGL knows no such CUDA device";
    display_ = function<EGLDisplay(EGLenum, void*, const EGLAttrib*)>("eglGetPlatformDisplay")(EGL_PLATFORM_DEVICE_EXT, device, nullptr);
    if (display_ == EGL_NO_DISPLAY) return "EGL opens no display on it";
    EGLint major = 0, minor = 0;
    if (!function<EGLBoolean(EGLDisplay, EGLint*, EGLint*)>("eglInitialize")(display_, &major, &minor)) return "EGL does not start on it";
    return make_context() ? "" : "EGL makes no OpenGL context on it";
  }

  EGLDeviceEXT device_of(int index) const {
    std::array<EGLDeviceEXT, 32> devices{};
    EGLint count = 0;
    const auto query = function<EGLBoolean(EGLint, EGLDeviceEXT*, EGLint*)>("eglQueryDevicesEXT");
    const auto attribute = function<EGLBoolean(EGLDeviceEXT, EGLint, EGLAttrib*)>("eglQueryDeviceAttribEXT");
    if (!query || !attribute || !query(static_cast<EGLint>(devices.size()), devices.data(), &count)) return nullptr;
    for (EGLint i = 0; i < count; ++i) {
      EGLAttrib cuda = -1;
      if (attribute(devices[static_cast<std::size_t>(i)], EGL_CUDA_DEVICE_NV, &cuda) && cuda == index)
        return devices[static_cast<std::size_t>(i)];
    }
    return nullptr;
  }

  bool make_context() {
    const std::array<EGLint, 5> wanted{EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_NONE};
    EGLConfig config = nullptr;
    EGLint count = 0;
    function<EGLBoolean(EGLenum)>("eglBindAPI")(EGL_OPENGL_API);
    const auto choose = function<EGLBoolean(EGLDisplay, const EGLint*, EGLConfig*, EGLint, EGLint*)>("eglChooseConfig");
    if (!choose(display_, wanted.data(), &config, 1, &count) || count == 0) return false;
    const auto create = function<EGLContext_(EGLDisplay, EGLConfig, EGLContext_, const EGLint*)>("eglCreateContext");
    context_ = create(display_, config, EGL_NO_CONTEXT, nullptr);
    const auto make_current = function<EGLBoolean(EGLDisplay, EGLSurface, EGLSurface, EGLContext_)>("eglMakeCurrent");
    return context_ != EGL_NO_CONTEXT && make_current(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, context_);
  }

  using Address = __eglMustCastToProperFunctionPointerType(const char*);
  void* library_ = nullptr;  // never closed: drivers do not like it
  Address* address_ = nullptr;
  EGLDisplay display_ = EGL_NO_DISPLAY;
  EGLContext_ context_ = EGL_NO_CONTEXT;
};

/// A buffer for pixels and textures made of it, by the functions of a context that is current.
class PixelBuffer {
 public:
  PixelBuffer(const EglContext& context, std::size_t bytes) : context_(context) {
    context.gl<PFNGLGENBUFFERSPROC>("glGenBuffers")(1, &name_);
    bind(name_);
    context.gl<PFNGLBUFFERDATAPROC>("glBufferData")(GL_PIXEL_UNPACK_BUFFER, static_cast<GLsizeiptr>(bytes), nullptr, GL_STREAM_COPY);
    bind(0);
  }
  ~PixelBuffer() { context_.gl<PFNGLDELETEBUFFERSPROC>("glDeleteBuffers")(1, &name_); }
  PixelBuffer(const PixelBuffer&) = delete;
  PixelBuffer& operator=(const PixelBuffer&) = delete;

  unsigned name() const { return name_; }
  void bind(unsigned name) const { context_.gl<PFNGLBINDBUFFERPROC>("glBindBuffer")(GL_PIXEL_UNPACK_BUFFER, name); }

 private:
  const EglContext& context_;
  GLuint name_ = 0;
};

/// A float texture of rows × columns numbers, as the window's heatmaps are.
class FloatTexture {
 public:
  FloatTexture(const EglContext& context, std::int64_t rows, std::int64_t columns) : context_(context), rows_(rows), columns_(columns) {
    context.gl<void(APIENTRY*)(GLsizei, GLuint*)>("glGenTextures")(1, &name_);
  }
  ~FloatTexture() { context_.gl<void(APIENTRY*)(GLsizei, const GLuint*)>("glDeleteTextures")(1, &name_); }
  FloatTexture(const FloatTexture&) = delete;
  FloatTexture& operator=(const FloatTexture&) = delete;

  /// From the host, or, where a pixel buffer is bound, from that place in it.
  void fill(const void* numbers) const {
    bind();
    const auto image =
        context_.gl<void(APIENTRY*)(GLenum, GLint, GLint, GLsizei, GLsizei, GLint, GLenum, GLenum, const void*)>("glTexImage2D");
    image(GL_TEXTURE_2D, 0, GL_R32F, static_cast<GLsizei>(columns_), static_cast<GLsizei>(rows_), 0, GL_RED, GL_FLOAT, numbers);
  }
  std::vector<float> texels() const {
    bind();
    std::vector<float> numbers(static_cast<std::size_t>(rows_ * columns_));
    context_.gl<void(APIENTRY*)(GLenum, GLint, GLenum, GLenum, void*)>("glGetTexImage")(GL_TEXTURE_2D, 0, GL_RED, GL_FLOAT, numbers.data());
    return numbers;
  }

 private:
  void bind() const { context_.gl<void(APIENTRY*)(GLenum, GLuint)>("glBindTexture")(GL_TEXTURE_2D, name_); }

  const EglContext& context_;
  std::int64_t rows_, columns_;
  GLuint name_ = 0;
};

}  // namespace statescope::testing
