import type { Ctx } from './context.ts';
import { SealedBox } from './sealed-box.ts';

/** The box that wraps everything this service seals, from the configured secret. Without it nothing starts: fail closed. */
export async function sealedBoxOf(ctx: Ctx): Promise<SealedBox> {
  const secret = await ctx.secrets.read(ctx.config.keyEncryptionRef);
  if (!secret) throw new Error('PLATFORM_AUTH_KEY_ENCRYPTION_REF names no readable secret of 32 bytes in base64');
  try {
    return new SealedBox(Buffer.from(Buffer.from(secret).toString('utf8').trim(), 'base64'));
  } finally {
    secret.fill(0);
  }
}
