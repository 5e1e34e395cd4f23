import type { GatewayClient } from './gateway/gateway-client.ts';
import { Problem } from './gateway/problem.ts';
import type { Target } from './gateway/target.ts';

export interface Org {
  readonly org_id: string;
  readonly slug: string;
  readonly display_name: string;
  readonly org_domain: string;
  readonly status: 'active' | 'suspended' | 'archived';
  readonly created_at: string;
  readonly updated_at: string;
}
export interface Env {
  readonly env_id: string;
  readonly org_id: string;
  readonly slug: string;
  readonly display_name: string;
  readonly auth_domain: string | null;
  readonly status: 'active' | 'suspended' | 'archived';
  readonly created_at: string;
  readonly updated_at: string;
}
export interface ReachableOrg extends Org {
  readonly access?: 'owner' | 'admin' | 'viewer';
  readonly envs: readonly Env[];
}
export interface Bootstrap {
  readonly user_id: string;
  readonly platform_admin: boolean;
  readonly orgs: readonly ReachableOrg[];
  readonly system?: { readonly org_id: string; readonly env_id: string };
  readonly features: Readonly<Record<string, boolean>>;
  readonly feature_version: string;
}
export interface NavEntry {
  readonly label: string;
  readonly page: string;
  readonly order?: number;
  readonly icon?: string;
  /** The heading it stands under; the service's own without. */
  readonly group?: string;
  /** What the page is about; an environment, unless it says otherwise. */
  readonly scope?: string;
}
/** Where a person reads what a service has for them. */
export interface Inbox {
  readonly list: string;
  readonly unread: string;
  readonly read: string;
  readonly read_all: string;
  readonly row: { readonly id: string; readonly title: string; readonly at: string; readonly read_at: string; readonly links?: string };
  readonly live_types: readonly string[];
  readonly settings?: string;
}
export interface ServiceEntry {
  readonly vertical: string;
  readonly service: string;
  readonly label: string;
  readonly nav: readonly NavEntry[];
  readonly pages: readonly string[];
  readonly inbox?: Inbox;
  readonly health?: 'up' | 'down';
}
export interface Enablement {
  readonly service: string;
  readonly enabled: boolean;
  /** The platform itself needs it: it stays on. */
  readonly essential: boolean;
  readonly explicit: boolean;
}
export type Branding = Partial<Record<BrandingField, string | null>>;
export type BrandingField =
  | 'primary_color' | 'secondary_color' | 'background_color' | 'text_color' | 'font_family' | 'logo_url' | 'theme_mode' | 'custom_css';
export type MergedBranding = Branding & { readonly sources?: Partial<Record<BrandingField, 'org' | 'env' | 'default'>> };
export interface DeletionPreview {
  readonly counts: Readonly<Record<string, number>>;
  /** What each other service would lose; one that did not answer in time has no counts. */
  readonly services: readonly { readonly service: string; readonly label: string; readonly counts?: Readonly<Record<string, number>> }[];
  readonly environments: readonly { readonly env_id: string; readonly slug: string; readonly display_name: string }[];
  readonly hostnames: readonly string[];
  readonly blocked_by: readonly { readonly code: string; readonly detail: string }[];
  readonly kept: readonly string[];
}
export interface SlugAnswer {
  readonly slug: string;
  readonly available: boolean;
  readonly reason: null | 'taken' | 'reserved' | 'invalid';
}
export interface Readiness {
  readonly status: 'ready' | 'not_ready';
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail?: string }>>;
}
export interface CatalogScope {
  readonly scope: string;
  readonly service: string;
  readonly title: string;
}
export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}
/** An org or an environment; where the console stands. */
export type Subject = { readonly kind: 'org' | 'env'; readonly id: string };

const subjectTarget = ({ kind, id }: Subject): Target => (kind === 'env' ? { env: id } : { org: id });
const subjectPath = ({ kind, id }: Subject, rest = '') => `/v1/${kind}/${encodeURIComponent(id)}${rest}`;

/** The registry through the gateway, with the verbs its documents give it. */
export class RegistryApi {
  readonly #client: GatewayClient;
  readonly #service: string;

  constructor(client: GatewayClient, service: string) {
    this.#client = client;
    this.#service = service;
  }

  bootstrap(target?: Target, signal?: AbortSignal): Promise<Bootstrap> {
    return this.#client.call(this.#service, '/v1/bootstrap', { target, signal });
  }

  /** Whether it runs, and which build. */
  health(signal?: AbortSignal): Promise<{ readonly status: string; readonly version?: string }> {
    return this.#client.call(this.#service, '/v1/health', { signal });
  }

  /** Whether it can do its work now; one that cannot says so with 503. */
  async readiness(signal?: AbortSignal): Promise<Readiness> {
    try {
      return await this.#client.call<Readiness>(this.#service, '/v1/readiness', { signal });
    } catch (error) {
      if (Problem.of(error).status === 503) return { status: 'not_ready', checks: {} };
      throw error;
    }
  }

  /** What every right of the platform is called. */
  async scopeCatalog(signal?: AbortSignal): Promise<readonly CatalogScope[]> {
    return (await this.#client.call<{ scopes: readonly CatalogScope[] }>(this.#service, '/v1/scopes/catalog', { signal })).scopes;
  }

  async services(): Promise<readonly ServiceEntry[]> {
    return (await this.#client.call<Page<ServiceEntry>>(this.#service, '/v1/verticals/services', { query: { limit: 200 } })).items;
  }

  orgs(cursor?: string, signal?: AbortSignal): Promise<Page<Org>> {
    return this.#client.call(this.#service, '/v1/o', { query: { limit: 100, cursor }, signal });
  }

  envs(org: string, signal?: AbortSignal): Promise<Page<Env>> {
    return this.#client.call(this.#service, '/v1/e', { query: { org_id: org, limit: 200 }, target: { org }, signal });
  }

  createOrg(body: { slug: string; display_name: string }): Promise<Org> {
    return this.#client.call(this.#service, '/v1/o', { method: 'POST', body });
  }

  createEnv(body: { org_id: string; slug: string; display_name: string }): Promise<Env> {
    return this.#client.call(this.#service, '/v1/e', { method: 'POST', body, target: { org: body.org_id } });
  }

  read<T extends Org | Env>(subject: Subject, signal?: AbortSignal): Promise<T> {
    return this.#client.call(this.#service, subjectPath(subject), { target: subjectTarget(subject), signal });
  }

  rename<T extends Org | Env>(subject: Subject, display_name: string): Promise<T> {
    return this.#client.call(this.#service, subjectPath(subject), { method: 'PUT', body: { display_name }, target: subjectTarget(subject) });
  }

  archive<T extends Org | Env>(subject: Subject): Promise<T> {
    return this.#client.call(this.#service, subjectPath(subject, '/archive'), { method: 'POST', target: subjectTarget(subject) });
  }

  setStatus(subject: Subject, status: 'active' | 'suspended'): Promise<Org | Env> {
    return this.#client.call(this.#service, subjectPath(subject), { method: 'PUT', body: { status }, target: subjectTarget(subject) });
  }

  deletionPreview(subject: Subject, signal?: AbortSignal): Promise<DeletionPreview> {
    return this.#client.call(this.#service, subjectPath(subject, '/deletion'), { target: subjectTarget(subject), signal });
  }

  delete(subject: Subject): Promise<void> {
    return this.#client.call(this.#service, subjectPath(subject), { method: 'DELETE', target: subjectTarget(subject) });
  }

  slugAvailable(slug: string, org: string | undefined, signal?: AbortSignal): Promise<SlugAnswer> {
    const query = org ? { kind: 'env', org_id: org } : { kind: 'org' };
    return this.#client.call(this.#service, `/v1/slug-available/${encodeURIComponent(slug)}`, { query, signal });
  }

  enablement(env: string, signal?: AbortSignal): Promise<{ services: readonly Enablement[] }> {
    return this.#client.call(this.#service, subjectPath({ kind: 'env', id: env }, '/services'), { target: { env }, signal });
  }

  enable(env: string, service: string, enabled: boolean): Promise<unknown> {
    const body = { services: [{ service, enabled }] };
    return this.#client.call(this.#service, subjectPath({ kind: 'env', id: env }, '/services'), { method: 'PUT', body, target: { env } });
  }

  branding(subject: Subject, signal?: AbortSignal): Promise<Branding> {
    return this.#client.call(this.#service, subjectPath(subject, '/branding'), { target: subjectTarget(subject), signal });
  }

  mergedBranding(env: string, signal?: AbortSignal): Promise<MergedBranding> {
    return this.#client.call(this.#service, subjectPath({ kind: 'env', id: env }, '/branding/merged'), { target: { env }, signal });
  }

  saveBranding(subject: Subject, body: Branding): Promise<Branding> {
    return this.#client.call(this.#service, subjectPath(subject, '/branding'), { method: 'PUT', body, target: subjectTarget(subject) });
  }
}
