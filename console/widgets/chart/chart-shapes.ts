export interface Frame {
  readonly width: number;
  readonly height: number;
  /** Value at the upper edge. */
  readonly top: number;
}

const round = (n: number) => Math.round(n * 10) / 10;

/** The next 1, 2, 2.5 or 5 times a power of ten, so that the axis reads well. */
export function niceMax(series: readonly (readonly number[])[]): number {
  const most = Math.max(0, ...series.flat());
  if (most === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 2.5, 5, 10].find(step => step * power >= most) ?? 10) * power;
}

function at(points: readonly number[], index: number, { width, height, top }: Frame): string {
  const x = points.length === 1 ? width / 2 : (index / (points.length - 1)) * width;
  return `${round(x)} ${round(height - ((points[index] ?? 0) / top) * height)}`;
}

export function line(points: readonly number[], frame: Frame): string {
  return points.map((_, index) => `${index ? 'L' : 'M'}${at(points, index, frame)}`).join('');
}

export function area(points: readonly number[], frame: Frame): string {
  return `${line(points, frame)}L${frame.width} ${frame.height}L0 ${frame.height}Z`;
}

export function bars(points: readonly number[], series: number, of: number, { width, height, top }: Frame) {
  const slot = width / points.length;
  const wide = Math.min(48, (slot * 0.7) / of);
  const start = (slot - wide * of) / 2 + wide * series;
  return points.map((value, index) => {
    const tall = (Math.max(0, value) / top) * height;
    return { x: round(index * slot + start), y: round(height - tall), width: round(wide * 0.92), height: round(tall) };
  });
}

export function slices(values: readonly number[], cx: number, cy: number, radius: number): string[] {
  const total = values.reduce((sum, value) => sum + Math.max(0, value), 0) || 1;
  let turn = 0;
  return values.map(value => {
    const share = Math.max(0, value) / total;
    const [from, to] = [turn, turn + share];
    turn = to;
    // A full circle has no two distinct ends, so an arc cannot draw it.
    const point = (t: number) => `${round(cx + radius * Math.sin(2 * Math.PI * t))} ${round(cy - radius * Math.cos(2 * Math.PI * t))}`;
    const end = share >= 1 ? to - 0.0005 : to;
    return `M${cx} ${cy}L${point(from)}A${radius} ${radius} 0 ${share > 0.5 ? 1 : 0} 1 ${point(end)}Z`;
  });
}
