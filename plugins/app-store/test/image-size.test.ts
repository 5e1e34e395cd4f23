import { expect, test } from 'vitest';
import { imageSize } from '../src/listings/image-size.ts';
import { jpeg, png, webpExtended, webpLossless, webpLossy } from './fixtures/images.ts';

test('each of the three kinds is known by its first bytes, with its size', () => {
  expect(imageSize(png(50_000, 7))).toEqual({ type: 'image/png', width: 50_000, height: 7 });
  expect(imageSize(jpeg(640, 480))).toEqual({ type: 'image/jpeg', width: 640, height: 480 });
  expect(imageSize(webpLossless(16_384, 2))).toEqual({ type: 'image/webp', width: 16_384, height: 2 });
  expect(imageSize(webpLossy(800, 600))).toEqual({ type: 'image/webp', width: 800, height: 600 });
  expect(imageSize(webpExtended(70_000, 3))).toEqual({ type: 'image/webp', width: 70_000, height: 3 });
});

test('everything else is no image, however it begins, and no cut throws', () => {
  const others = [
    '<svg xmlns="http://www.w3.org/2000/svg"/>',
    '<?xml version="1.0"?><svg/>',
    'GIF89a/*<script>alert(1)</script>*/',
    '<html><script>',
    'BM',
    '%PDF-1.7',
    '',
  ];
  for (const text of others) expect([text, imageSize(Buffer.from(text))]).toEqual([text, undefined]);
  for (const image of [png(1, 1), jpeg(1, 1), webpLossless(1, 1), webpLossy(1, 1), webpExtended(1, 1)]) {
    // Up to where the size ends; what is behind it is not looked at.
    for (let length = 0; length < 18; length++) expect(imageSize(image.subarray(0, length))).toBe(undefined);
  }
  expect(imageSize(Buffer.concat([Buffer.from([0xff, 0xd8]), Buffer.alloc(64, 0xff)]))).toBe(undefined);
});
