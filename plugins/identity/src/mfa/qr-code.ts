import { encode } from 'uqr';

/** The dark modules of a QR code as one SVG path in units of a module, with the quiet zone of four that ISO 18004 asks for. */
export function qrCode(text: string): { size: number; path: string } {
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const runs = data.flatMap((row, y) => {
    const found: string[] = [];
    for (let x = 0; x < row.length; x++) {
      if (!row[x]) continue;
      const start = x;
      while (row[x + 1]) x++;
      found.push(`M${start} ${y}h${x - start + 1}v1H${start}z`);
    }
    return found;
  });
  return { size, path: runs.join('') };
}
