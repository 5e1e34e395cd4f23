import { ApiProblem } from '../identity-api.ts';
import type { Page } from '../page.ts';

interface Provider {
  request(call: { method: string; params?: unknown[] }): Promise<unknown>;
}
interface Challenge {
  readonly challenge_id: string;
  readonly message: string;
}

/** What the wallet of this browser (EIP-1193) answers to a challenge for its address. */
export async function signedByWallet(
  { m }: Page,
  challengeFor: (address: string) => Promise<Challenge>,
): Promise<{ challenge_id: string; signature: string }> {
  const provider = (window as { ethereum?: Provider }).ethereum;
  if (!provider) throw new ApiProblem(0, { code: 'no_wallet', detail: m.wallet_missing }, '');
  const asked = (method: string, params?: unknown[]) =>
    provider.request({ method, ...(params ? { params } : {}) }).catch(() => {
      throw new ApiProblem(0, { code: 'wallet_declined', detail: m.wallet_declined }, '');
    });
  const [address = ''] = ((await asked('eth_requestAccounts')) ?? []) as string[];
  const { challenge_id, message } = await challengeFor(address);
  const bytes = new TextEncoder().encode(message);
  // Wallets take the text as the hexadecimal digits of its bytes, and show it as text.
  const hex = `0x${Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')}`;
  return { challenge_id, signature: String(await asked('personal_sign', [hex, address])) };
}
