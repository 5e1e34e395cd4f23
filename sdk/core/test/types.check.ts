import { defineContract, definePlugin, event, get, post, subscribe, Type, Page, PageQuery, } from '@platform/sdk';
const Org = Type.Object({ org_id: Type.String(), slug: Type.String() });
export const reg = defineContract({
  id: 'sys', title: 'R', placement: { tier: 15 },
  uses: { auth: ['auth:membership:write'] },
  config: Type.Object({ days: Type.Integer({ default: 3 }) }),
  actions: { 'sys:read': { title: 'x', grants: 'read' }, 'audit:write': { title: 'w', principals: ['machine'] } },
  problems: { slug_taken: { status: 409, title: 't', retry: 'never' } },
  events: { 'platform:sys:org:created': event('o', Org) },
  routes: {
    createOrg: post('/v1/o', { summary: 's', gate: 'sys:read', body: Type.Object({ slug: Type.String() }), returns: Org, problems: ['slug_taken'], emits: ['platform:sys:org:created'] }),
    getOrg: get('/v1/org/{id}', { summary: 's', gate: { any: ['sys:read'] }, returns: Org, query: PageQuery }),
    list: get('/v1/o', { summary: 's', gate: { public: 'x' }, returns: Page(Org) }),
    audit: post('/v1/audit', { summary: 'x', gate: 'audit:write' }),
  },
});
const l = defineContract({ id: 'l', vertical: 'acme', title: 'L', placement: { tier: 50 }, uses: { sys: ['sys:read'] }, actions: {}, problems: {}, events: {}, routes: {}, consumes: { made: subscribe('platform:sys:org:created', { family: 'sys' }) } });
export const lp = definePlugin(l, { uses: { registry: reg }, setup: (ctx) => ({ routes: {}, on: { made: async d => { ctx.log.info({ x: d.payload.org_id }, 'x'); const o = await ctx.services.registry.getOrg({ params: { id: 'x' } }); o.slug;
  // @ts-expect-error unknown body
  await ctx.services.registry.createOrg({ body: { sloog: 'x' } });
} } }) });
export const p = definePlugin(reg, { setup: (ctx) => ({ routes: {
  createOrg: async ({ body, caller }) => { body.slug; caller.subject; const d: number = ctx.config.days; await ctx.db.tx(tx => tx.emit('platform:sys:org:created', 'e', { org_id: 'x', slug: 'y' })); throw ctx.problem('slug_taken'); },
  getOrg: async ({ params, query }) => ({ org_id: params.id, slug: String(query.limit) }),
  list: async ({ caller }) => { const u: undefined = caller; return { items: [], next_cursor: null }; },
  audit: async ({ caller }) => { const s: string = caller.service; },
} }) });
// negative
defineContract({ id: 'x', title: 'x', placement: { tier: 1 }, actions: { 'a:b': { title: '' } }, problems: {}, events: {}, routes: {
  // @ts-expect-error gate
  r: get('/v1/x', { summary: '', gate: 'nope' }) } });
