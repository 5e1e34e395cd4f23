import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { admitsCoding, type Cache, type NodeExchange, type RequestOf, SYSTEM } from '@platform/sdk';
import { ASSETS_PREFIX, type Assets, assetsOf } from '../../../../signin/assets.ts';
import { localeOf } from '../../../../signin/messages.ts';
import { pathWith } from '../../../../signin/oauth-context.ts';
import { renderStep } from '../../../../signin/render.ts';
import { stepOf } from '../../../../signin/step.ts';
import type { Invited } from '../account/sign-up/invited.ts';
import type { SignUpPolicy } from '../account/sign-up/sign-up-policy.ts';
import type { Contract, Ctx } from '../context.ts';
import { methodsAt, readsJson } from '../protocol/declared-paths.ts';
import type { Realm, Realms } from '../realms.ts';
import type { UpstreamProviders } from '../sso/upstream-providers.ts';

const BUNDLE = fileURLToPath(new URL('../../../../signin/dist', import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const SECURITY = {
  'content-security-policy': "default-src 'self'; img-src 'self' https:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};
const BRANDING_MS = 30_000;
/** Pages that say who invites where to. */
const INVITES = new Set(['sign-in', 'sign-up', 'verify-email']);

interface Encodings {
  readonly plain: Buffer;
  readonly brotli: Buffer;
}

/** Pages hold no secret that a person has not typed into the address, so their size tells nothing (BREACH). */
const encodings = (plain: Buffer): Encodings => ({
  plain,
  brotli: brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: plain.length > 16_384 ? 11 : 5 } }),
});

function answer(
  { req, res }: Pick<NodeExchange, 'req' | 'res'>,
  status: number,
  { plain, brotli }: Encodings,
  headers: Readonly<Record<string, string>>,
): void {
  const compressed = admitsCoding(String(req.headers['accept-encoding'] ?? ''), 'br');
  const bytes = compressed ? brotli : plain;
  res.writeHead(status, {
    ...SECURITY,
    ...headers,
    vary: 'accept-encoding',
    'content-length': bytes.length,
    ...(compressed ? { 'content-encoding': 'br' } : {}),
  });
  res.end(req.method === 'HEAD' ? undefined : bytes);
}

/** The hosted sign-in pages: rendered here, readable before any script, one path a step (G-SGN-01). */
export class HostedPages {
  readonly #ctx: Ctx;
  readonly #realms: Realms;
  readonly #signUp: SignUpPolicy;
  readonly #invited: Invited;
  readonly #providers: UpstreamProviders;
  readonly #assets: Assets;
  readonly #files = new Map<string, Encodings & { type: string }>();
  readonly #brandings: Cache<Readonly<Record<string, string>>>;

  constructor(
    ctx: Ctx,
    { invited, providers, realms, signUp }: { invited: Invited; providers: UpstreamProviders; realms: Realms; signUp: SignUpPolicy },
  ) {
    if (!existsSync(join(BUNDLE, 'manifest.json'))) throw new Error('signin/dist is missing; `npm start` builds it');
    this.#ctx = ctx;
    this.#brandings = ctx.cache({ max: 1_000, ttl: BRANDING_MS, stale: { ms: Number.POSITIVE_INFINITY } });
    this.#realms = realms;
    this.#signUp = signUp;
    this.#invited = invited;
    this.#providers = providers;
    this.#assets = assetsOf(JSON.parse(readFileSync(join(BUNDLE, 'manifest.json'), 'utf8')) as Record<string, { file: string }>);
    for (const name of readdirSync(BUNDLE, { recursive: true }) as string[]) {
      const type = TYPES[extname(name)];
      if (type) this.#files.set(ASSETS_PREFIX + name.replaceAll('\\', '/'), { ...encodings(readFileSync(join(BUNDLE, name))), type });
    }
  }

  async serve({ req, res, hostname }: NodeExchange): Promise<void> {
    const url = new URL(req.url ?? '/', 'https://pages');
    const looks = req.method === 'GET' || req.method === 'HEAD';
    const methods = methodsAt(url.pathname);
    // What comes here with a method of its own path was declared with others.
    if (methods.length > 0 || (!looks && stepOf(url.pathname) !== 'not-found'))
      throw this.#notAllowed(methods.length > 0 ? methods : ['GET', 'HEAD']);
    const file = this.#files.get(url.pathname);
    if (file) return answer({ req, res }, 200, file, { 'content-type': file.type, 'cache-control': 'public, max-age=31536000, immutable' });
    // Browsers ask for it by themselves; the mark of the page is drawn by its style.
    if (url.pathname === '/favicon.ico') return void res.writeHead(204, { ...SECURITY, 'cache-control': 'public, max-age=86400' }).end();
    const realm = await this.#realms.onHost(hostname);
    // The root is where a sign-in without an application ends.
    if (url.pathname === '/')
      return void res
        .writeHead(303, { ...SECURITY, location: this.#home(realm, url.searchParams.get('ui_locales')), 'cache-control': 'no-store' })
        .end();
    const step = stepOf(url.pathname);
    if (step === 'not-found' && (!looks || readsJson(url.pathname, req.headers.accept)))
      throw this.#ctx.problem('not_found', { detail: 'Nothing is at this path.' });
    const query = Object.fromEntries(url.searchParams);
    const invitation = INVITES.has(step) ? await this.#invited.open(realm, query['invitation']) : undefined;
    const body = renderStep(step, {
      locale: localeOf(req.headers['accept-language'], query['ui_locales']),
      query,
      assets: this.#assets,
      displayName: 'Platform',
      branding: this.#brandings.peek(realm.env_id),
      walletSignIn: realm.wallet_sign_in !== 'off',
      passkeys: realm.passkeys,
      recovery: realm.account_recovery !== 'off',
      sso: step === 'sign-in' ? await this.#providers.labelOf(realm) : undefined,
      allowSignUp:
        (step === 'sign-in' || step === 'sign-up') && (invitation !== undefined || (await this.#signUp.shown(realm, query['client_id']))),
      invitation,
    });
    answer({ req, res }, step === 'not-found' ? 404 : 200, encodings(Buffer.from(body)), {
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-store',
    });
  }

  /** Never fails a page: without the registry the platform's defaults show (doc1, sign-in 5). */
  async branding({ hostname }: RequestOf<Contract, 'branding'>) {
    const realm = await this.#realms.onHost(hostname);
    const fields = await this.#read(realm.env_id);
    const pick = (name: string) => fields[name] ?? null;
    return {
      primary_color: pick('primary_color'),
      background_color: pick('background_color'),
      text_color: pick('text_color'),
      font_family: pick('font_family'),
      logo_url: pick('logo_url'),
      theme_mode: fields['theme_mode'] ?? 'system',
      display_name: 'Platform',
      customCss: pick('custom_css'),
    };
  }

  /** The platform's people go on to the console; a tenant's to their account, for which of its applications they came is not known. */
  #home(realm: Realm, uiLocales: string | null): string {
    return realm.env_id === SYSTEM.envId
      ? `${this.#ctx.platform.publicOrigin(this.#ctx.platform.host('console'))}/`
      : pathWith('/account', { ui_locales: uiLocales ?? undefined });
  }

  #notAllowed(methods: readonly string[]) {
    const allow = methods.join(', ');
    return this.#ctx.problem('method_not_allowed', { detail: `Here: ${allow}.`, headers: { allow } });
  }

  async #read(envId: string): Promise<Readonly<Record<string, string>>> {
    try {
      return await this.#brandings.get(envId, async () => {
        const { sources: _, ...fields } = await this.#ctx.services.registry.mergedBranding({
          params: { id: envId },
          signal: AbortSignal.timeout(2_000),
        });
        return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
      });
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'branding not to be had');
      return {};
    }
  }
}
