import { Secret, TOTP } from 'otpauth';

/** RFC 6238 with the values every authenticator app assumes. `digits` is another only in the RFC's own examples. */
const PERIOD_S = 30;
const DIGITS = 6;
/** G-AUTH-08: the step before and after are accepted too. */
const WINDOW = 1;

const passwordOf = (secret: Uint8Array, digits = DIGITS): TOTP =>
  new TOTP({ secret: secretOf(secret), algorithm: 'SHA1', digits, period: PERIOD_S });

const secretOf = (bytes: Uint8Array): Secret => new Secret({ buffer: Uint8Array.from(bytes).buffer });

/** The code that an app shows at a time. */
export const codeAt = (secret: Uint8Array, time: Date, digits = DIGITS): string =>
  passwordOf(secret, digits).generate({ timestamp: time.getTime() });

/** The step whose code was given, if it is one of those accepted now. The comparison takes the same time for every code of six digits. */
export function stepOfCode(secret: Uint8Array, code: string, time: Date): number | undefined {
  const timestamp = time.getTime();
  const offset = passwordOf(secret).validate({ token: code, timestamp, window: WINDOW });
  return offset === null ? undefined : TOTP.counter({ period: PERIOD_S, timestamp }) + offset;
}

/** RFC 4648 base32 without padding, as apps take a secret that is typed. */
export const base32 = (bytes: Uint8Array): string => secretOf(bytes).base32;

/** What an authenticator app reads from the QR code. */
export const otpauthUri = (secret: Uint8Array, { issuer, account }: { issuer: string; account: string }): string =>
  new TOTP({ issuer, label: account, secret: secretOf(secret), algorithm: 'SHA1', digits: DIGITS, period: PERIOD_S }).toString();
