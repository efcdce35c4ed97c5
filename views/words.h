// Marks a title, a question, help or the name of a way of looking: Qt's lupdate finds it by this name, and the window translates the text
// when it shows it. What a view itself draws and says stays English.
#pragma once

#ifndef QT_TRANSLATE_NOOP
#define QT_TRANSLATE_NOOP(context, text) text
#endif
