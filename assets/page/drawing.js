// Draws what was recorded: the commands of app/canvas/web_canvas.h.
'use strict';

const fonts = ['"DejaVu Sans", Verdana, "Bitstream Vera Sans", sans-serif', '"DejaVu Sans Mono", Menlo, Consolas, monospace'];
const capitals = 0.346;  // from a line's middle to its baseline, of the em
const Op = {fill: 0, stroke: 1, line: 2, path: 3, polygon: 4, ribbon: 5, text: 6, heatmap: 7, clip: 8, endClip: 9};
const maps = data.maps.map(bytesOf);

/// Where a value lies on its colours, 0 to 255.
function colorIndex(value, low, high, logarithmic) {
  const place = (x) => logarithmic ? Math.log(Math.max(x, low)) : x;
  const from = place(low), range = place(high) - from;
  return Math.round(255 * (range > 0 ? Math.min(1, Math.max(0, (place(value) - from) / range)) : 0.5));
}

/// A pixel for each cell. Where there is no number it is grey, and `holes` has its place, or, `blank`, there is none.
function heatmapImage(reel, number, dark) {
  const key = 2 * number + (dark ? 1 : 0);
  if (reel.images.has(key)) return reel.images.get(key);
  const [, , , , , rows, columns, light, other, blank, kind, first, begin, low, high, logarithmic] = reel.commands[number];
  const colors = maps[dark ? other : light], canvas = document.createElement('canvas'), holes = [];
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d'), image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; ++i) {
    let index = -1;
    if (kind === 1) {
      const value = reel.number(first, begin + i);
      if (!Number.isNaN(value)) index = colorIndex(value, low, high, logarithmic);
    } else if (reel.quantised[first + i] !== 255) {
      index = Math.round(reel.quantised[first + i] * 255 / 254);
    }
    if (index < 0 && blank) continue;
    if (index < 0) holes.push(i);
    for (let c = 0; c < 3; ++c) image.data[4 * i + c] = index < 0 ? 160 : colors[3 * index + c];
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  if (reel.images.size > 60) reel.images.clear();
  reel.images.set(key, {canvas, holes, columns, rows});
  return reel.images.get(key);
}

function hatch(context, image, x, y, w, h) {
  const cellW = w / image.columns, cellH = h / image.rows;
  if (Math.min(cellW, cellH) < 6) return;
  context.save();
  context.strokeStyle = '#5a5a5a';
  context.lineWidth = 0.7;
  for (const i of image.holes) {
    const left = x + cellW * (i % image.columns), top = y + cellH * Math.floor(i / image.columns);
    context.save();
    context.beginPath();
    context.rect(left, top, cellW, cellH);
    context.clip();
    context.beginPath();
    for (let d = -cellH; d < cellW; d += 4) {
      context.moveTo(left + d, top + cellH);
      context.lineTo(left + d + cellH, top);
    }
    context.stroke();
    context.restore();
  }
  context.restore();
}

function rectangle(context, x, y, w, h, corner) {
  context.beginPath();
  corner > 0 && context.roundRect ? context.roundRect(x, y, w, h, corner) : context.rect(x, y, w, h);
}

function drawText(context, [x, y, size, face, align, width, words]) {
  context.font = `${face & 2 ? 'bold ' : ''}${size}px ${fonts[face & 1]}`;
  context.textAlign = ['left', 'center', 'right'][align];
  context.textBaseline = 'alphabetic';
  context.fillText(words, x / data.unit, y / data.unit + capitals * size, width / data.unit + 0.5);
}

function drawCommand(context, reel, number, dark) {
  const [op, ...all] = reel.commands[number], unit = data.unit;
  if (op === Op.endClip) return context.restore();
  if (op === Op.heatmap || op === Op.clip) {
    const [x, y, w, h] = all.map((part) => part / unit);
    if (op === Op.clip) {
      context.save();
      context.beginPath();
      context.rect(x, y, w, h);
      return context.clip();
    }
    const image = heatmapImage(reel, number, dark);
    context.imageSmoothingEnabled = false;
    context.drawImage(image.canvas, x, y, w, h);
    return hatch(context, image, x, y, w, h);
  }
  const [colors, ...parts] = all, color = reel.palette[colors][dark ? 1 : 0];
  context.fillStyle = context.strokeStyle = color;
  if (op === Op.text) return drawText(context, parts);
  const lengths = parts.map((part) => part / unit);
  context.lineCap = 'butt';
  context.lineJoin = op === Op.path ? 'round' : 'miter';
  if (op === Op.fill) {
    const [x, y, w, h, corner] = lengths;
    rectangle(context, x, y, w, h, corner);
    context.fill();
  } else if (op === Op.stroke) {
    const [x, y, w, h, width, corner] = lengths;
    context.lineWidth = width;
    rectangle(context, x, y, w, h, corner);
    context.stroke();
  } else if (op === Op.line || op === Op.ribbon) {
    const [x0, y0, x1, y1, width] = lengths, middle = (x0 + x1) / 2;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x0, y0);
    op === Op.line ? context.lineTo(x1, y1) : context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
    context.stroke();
  } else {
    let x = 0, y = 0;
    context.lineWidth = lengths[0];
    context.beginPath();
    for (let i = 1; i < lengths.length; i += 2) context.lineTo(x += lengths[i], y += lengths[i + 1]);
    op === Op.polygon ? context.fill() : context.stroke();
  }
}
