// What `statescope page` recorded of a view, unpacked, and what stands under the pointer in it.
'use strict';

const element = (id) => document.getElementById(id);
const data = JSON.parse(element('data').textContent);
const none = 127, infinite = 126;  // exponents
const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/// Five letters are four bytes (base85 in app/web/page.cpp).
function unlettered(text, length) {
  const values = new Uint8Array(128), bytes = new Uint8Array(text.length / 5 * 4), view = new DataView(bytes.buffer);
  for (let letter = 35, value = 0; letter <= 122; ++letter) if (!'&<\\'.includes(String.fromCharCode(letter))) values[letter] = value++;
  for (let i = 0; i < text.length; i += 5) {
    let number = 0;
    for (let k = 0; k < 5; ++k) number = 85 * number + values[text.charCodeAt(i + k)];
    view.setUint32(i / 5 * 4, number);
  }
  return bytes.subarray(0, length);
}

async function unpacked(script) {
  const bytes = unlettered(script.textContent, Number(script.dataset.bytes));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Reel {
  constructor(bytes) {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))));
    let at = 4 + length;
    const low = new Uint16Array(bytes.buffer.slice(at, at + 2 * this.words));
    const high = new Uint16Array(bytes.buffer.slice(at += 2 * this.words, at + 2 * this.words));
    at += 2 * this.words;
    this.starts = [];  // of the parts of arrays
    let count = 0;
    for (const part of this.parts) {
      this.starts.push(count);
      count += part;
    }
    this.low = bytes.subarray(at, at + count);
    this.high = bytes.subarray(at + count, at + 2 * count);
    this.exponents = new Int8Array(bytes.buffer.slice(at + 2 * count, at + 3 * count));
    this.quantised = bytes.subarray(at + 3 * count, at + 3 * count + this.cells);
    let i = 0;
    const word = () => low[i] + 65536 * high[i++];
    const named = {commands: 0, regions: 0, sheets: 0};
    const name = (table) => {  // 0: the next that has not been named yet
      const number = word();
      return number === 0 ? named[table]++ : number - 1;
    };
    const list = (read) => Array.from({length: word()}, read);
    this.frames = Array.from({length: this.tokens}, () => ({
      commands: list(() => name('commands')),
      regions: list(() => [name('regions'), word()]),
      sheets: new Map(list(() => [word(), name('sheets')])),
      said: word(),
    }));
    this.images = new Map();
  }
  /// [mantissa, exponent] of a number of an array.
  decimal(array, i) {
    const rows = this.arrays[array][0];
    if (rows > 0) {  // of a symmetric matrix the lower half
      const row = Math.max(Math.floor(i / rows), i % rows), column = Math.min(Math.floor(i / rows), i % rows);
      i = row * (row + 1) / 2 + column;
    }
    const at = this.starts[this.arrays[array][1 + (i >> 8)]] + (i & 255);
    return [(this.low[at] | this.high[at] << 8) << 16 >> 16, this.exponents[at]];
  }
  number(array, i) {
    const [mantissa, exponent] = this.decimal(array, i);
    return exponent === none ? NaN : exponent === infinite ? mantissa * Infinity : Number(`${mantissa}e${exponent}`);
  }
}

function valueText([mantissa, exponent]) {
  if (exponent === none) return '—';
  if (exponent === infinite) return mantissa < 0 ? '−∞' : '∞';
  const value = Number(`${mantissa}e${exponent}`), size = Math.abs(value);
  return size > 0 && size < 1e-4 ? value.toExponential().replace(/e-(\d)$/, 'e-0$1') : String(value);
}

/// The place of the region under a point of the drawing: [region, sheet, places, number of the cell]; null: there is none.
function placeAt(reel, frame, x, y) {
  for (let i = frame.regions.length - 1; i >= 0; --i) {
    const [region, remarks] = frame.regions[i];
    const [rx, ry, rw, rh, vx, vy, vw, vh, sheet, a, b, c, rows, columns, down, across] = reel.regions[region];
    const px = x * data.unit, py = y * data.unit;
    if (px < vx || py < vy || px >= vx + vw || py >= vy + vh) continue;
    const part = (at, begin, length, count) => Math.min(count - 1, Math.max(0, Math.floor((at - begin) / length * count)));
    const row = part(py, ry, rh, rows), column = part(px, rx, rw, columns), at = [a, b, c];
    if (rows > 1) at[down] += row;
    if (columns > 1) at[across] += column;
    return {sheet, at, remarks, cell: row * columns + column};
  }
  return null;
}

function sheetOf(reel, frame, place) {
  const number = frame.sheets.get(place.sheet);
  if (number === undefined) return null;
  const [axes, here, columns, where, accuracy] = reel.sheets[number];
  const sheet = {axes: axes.map((axis) => reel.axes[axis]), here, columns, where, accuracy};
  const inside = place.at.every((index, axis) => index < (axis < sheet.axes.length ? sheet.axes[axis][0].length : 0));
  return inside ? sheet : null;
}

/// Of a column at some places; where one axis is open, of each place of it.
function said(reel, sheet, column, at) {
  const [title, , along, array, texts, noneWords] = column, most = 12;
  const value = (places) => {
    let index = 0;
    for (const axis of along) index = index * sheet.axes[axis][0].length + places[axis];
    if (texts >= 0) return reel.texts[reel.lists[texts][index]];
    const decimal = reel.decimal(array, index), words = reel.texts[noneWords];
    return decimal[1] === none && words ? words : valueText(decimal);
  };
  const open = along.filter((axis) => at[axis] < 0);
  if (open.length > 1) return '';
  if (open.length === 0) return value(at) === '' ? '' : `${reel.texts[title]} = ${value(at)}`;
  const words = sheet.axes[open[0]][0], all = [];
  for (let i = 0; i < Math.min(words.length, most); ++i) {
    const one = value(at.map((place, axis) => axis === open[0] ? i : place));
    if (one && one !== '—') all.push(`${reel.texts[words[i]]} = ${one}`);
  }
  if (all.length === 0) return '';
  if (words.length > most) all.push('…');
  return `${reel.texts[title]}: ${all.join(', ')}`;
}

function tooltip(reel, frame, place) {
  const sheet = sheetOf(reel, frame, place);
  if (!sheet) return '';
  const at = place.at.map((index, axis) => index === -2 ? (sheet.here[axis] ?? -1) : index);
  const where = sheet.axes.map(([words], axis) => at[axis] >= 0 ? reel.texts[words[at[axis]]] : '').filter((words) => words);
  const lines = [];
  let equation = '';
  for (const column of sheet.columns) {
    const [, formula, along] = column;
    if (!sheet.axes.every((_, axis) => place.at[axis] < 0 || along.includes(axis))) continue;
    const words = said(reel, sheet, column, at);
    if (!words) continue;
    if (lines.length > 0 && reel.texts[formula] !== equation && equation) lines[lines.length - 1] += `   ${equation}`;
    lines.push(words);
    equation = reel.texts[formula];
  }
  if (equation) lines[lines.length - 1] += `   ${equation}`;
  lines.unshift(where.join(', '));
  if (reel.texts[sheet.where]) lines.push(reel.texts[sheet.where]);
  const remark = place.remarks ? reel.texts[reel.lists[place.remarks - 1][place.cell]] : '';
  if (remark) lines.push(remark);
  lines.push(reel.texts[sheet.accuracy]);
  return lines.join('\n');
}

/// The token that choosing the place leads to, or −1.
function tokenOf(reel, frame, place) {
  const sheet = sheetOf(reel, frame, place);
  let token = -1;
  for (let axis = 0; sheet && axis < sheet.axes.length; ++axis) {
    const tokens = sheet.axes[axis][1];
    if (tokens && place.at[axis] >= 0 && tokens[place.at[axis]] >= 0) token = tokens[place.at[axis]];
  }
  return token;
}
