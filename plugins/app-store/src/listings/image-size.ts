import type { ContentType } from '../../contract/schema/listing.ts';

/** What the first bytes of an image say of it. */
export interface ImageSize {
  readonly type: ContentType;
  readonly width: number;
  readonly height: number;
}

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const START_OF_FRAME = new Set([0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf]);

/**
 * Which of the three kinds an image is, by its signature, and how large it is, by its header; `undefined` for all else, SVG included.
 * PNG (RFC 2083, 3.1 and 4.1.1), JPEG (ITU-T T.81, B.2.2), WebP (RFC 9649).
 */
export function imageSize(bytes: Buffer): ImageSize | undefined {
  try {
    return png(bytes) ?? webp(bytes) ?? jpeg(bytes);
  } catch (error) {
    // A header that ends before its size.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function png(bytes: Buffer): ImageSize | undefined {
  if (!bytes.subarray(0, 8).equals(PNG) || bytes.toString('latin1', 12, 16) !== 'IHDR') return undefined;
  return { type: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function webp(bytes: Buffer): ImageSize | undefined {
  if (bytes.toString('latin1', 0, 4) !== 'RIFF' || bytes.toString('latin1', 8, 12) !== 'WEBP') return undefined;
  const type = 'image/webp' as const;
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8X':
      return { type, width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
    case 'VP8L': {
      if (bytes.readUInt8(20) !== 0x2f) return undefined;
      const packed = bytes.readUInt32LE(21);
      return { type, width: 1 + (packed & 0x3fff), height: 1 + ((packed >>> 14) & 0x3fff) };
    }
    case 'VP8 ':
      if (bytes.readUIntLE(23, 3) !== 0x2a019d) return undefined;
      return { type, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    default:
      return undefined;
  }
}

function jpeg(bytes: Buffer): ImageSize | undefined {
  if (bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  for (let at = 2; at < bytes.length; ) {
    if (bytes.readUInt8(at) !== 0xff) return undefined;
    const marker = bytes.readUInt8(at + 1);
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (START_OF_FRAME.has(marker)) return { type: 'image/jpeg', width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    const length = bytes.readUInt16BE(at + 2);
    if (length < 2 || marker === 0xd9 || marker === 0xda) return undefined;
    at += 2 + length;
  }
  return undefined;
}
