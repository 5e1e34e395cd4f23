import { filled } from '../../messages.ts';
import { AttachedForm, textOf } from '../attached-form.ts';
import { showConsents } from './consent-list.ts';
import { ApiProblem, type Authenticator, type OwnSession } from '../identity-api.ts';
import { listRow } from '../list-row.ts';
import type { Page } from '../page.ts';
import { PasskeyList } from './passkey-list.ts';
import { showRecovery } from './recovery-notice.ts';
import { signedByWallet } from './wallet-provider.ts';
import { withoutPassword } from './without-password.ts';

const SVG = 'http://www.w3.org/2000/svg';

/** Shows what `load` brings; a person who is not signed in signs in first and comes back. */
async function arrive(page: Page, path: '/account' | '/account/mfa', load: () => Promise<void>): Promise<void> {
  const pending = page.find('[data-pending]');
  try {
    await load();
    const loaded = page.find('[data-loaded]');
    if (loaded) loaded.hidden = false;
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'session_required') return page.goTo('sign-in', { return_to: path });
    page.say(error instanceof ApiProblem ? textOf(error, page.m) : page.m.unexpected);
  }
  if (pending) pending.hidden = true;
}

function put(page: Page, selector: string, text: string): void {
  const place = page.find(selector);
  if (place) place.textContent = text;
}

function show(page: Page, selector: string, shown = true): void {
  const place = page.find(selector);
  if (place) place.hidden = !shown;
}

export function attachAccount(page: Page, element: HTMLFormElement): AttachedForm {
  const { api, m } = page;
  const refused = (error: unknown) => {
    put(page, '[data-devices-alert]', error instanceof ApiProblem ? textOf(error, m) : m.unexpected);
    show(page, '[data-devices-alert]');
  };
  const devices = async () => {
    const { items } = await api.sessions();
    page
      .find('[data-devices]')
      ?.replaceChildren(
        ...items.map(session => deviceRow(page, session, () => void api.endSession(session.session_id).then(devices).catch(refused))),
      );
    const others = page.find<HTMLButtonElement>('[data-end-others]');
    if (others) others.hidden = others.disabled = items.every(({ current }) => current);
  };
  page.find('[data-end-others]')?.addEventListener('click', () => void api.endOtherSessions().then(devices).catch(refused));
  const wallets = attachWallets(page);
  const passkeyForm = page.find<HTMLFormElement>('[data-passkey-form]');
  const passkeys = passkeyForm && new PasskeyList(page, passkeyForm);
  void arrive(page, '/account', async () => {
    const [own] = await Promise.all([api.account(), devices(), wallets(), showConsents(page), passkeys?.show()]);
    showRecovery(page, own);
    if (!own.has_password) withoutPassword(page, '/account');
    put(page, '[data-email]', own.email);
    put(
      page,
      '[data-factor]',
      own.mfa_enrolled
        ? filled(m.second_factor_on, { n: own.recovery_codes_left })
        : own.has_password
          ? m.second_factor_off
          : m.second_factor_none,
    );
    const username = page.find<HTMLInputElement>('[data-username]');
    if (username) username.value = own.email;
  });
  return new AttachedForm(element, m, async ({ current_password = '', password = '' }) => {
    await api.changeOwnPassword({ current_password, password });
    page.goTo('account', { notice: 'password_changed' });
  });
}

function deviceRow({ m }: Page, { device, current, last_seen_at }: OwnSession, run: () => void): HTMLElement {
  const title = device || m.unknown_device;
  const seen = current
    ? m.this_device
    : filled(m.last_seen, { time: new Date(last_seen_at).toLocaleString(document.documentElement.lang) });
  return listRow({
    title,
    lines: [seen],
    ...(current ? {} : { action: { label: m.end_device, spoken: `${m.end_device}: ${title}`, run } }),
  });
}

/** Wallets of the account, in a form of their own: its password is for adding one, and for removing any. @returns what shows them. */
function attachWallets(page: Page): () => Promise<void> {
  const { api, m } = page;
  const element = page.find<HTMLFormElement>('[data-wallets]');
  const load = async () => {
    const { enabled, items } = await api.wallets();
    show(page, '[data-wallets-section]', enabled || items.length > 0);
    show(page, '[data-wallet-add]', enabled);
    page.find('[data-wallet-list]')?.replaceChildren(...items.map(({ address }) => walletRow(page, address)));
  };
  if (element) {
    new AttachedForm(element, m, async ({ wallet_password = '' }, decision) => {
      if (decision === 'add') await api.linkWallet(await signedByWallet(page, address => api.beginWalletLink(address, wallet_password)));
      else await api.unlinkWallet(decision, wallet_password);
      await load();
    });
  }
  return load;
}

function walletRow({ m }: Page, address: string): HTMLElement {
  const row = document.createElement('li');
  row.className = 'device';
  const name = document.createElement('code');
  name.textContent = `${address.slice(0, 8)}…${address.slice(-6)}`;
  name.title = address;
  const button = document.createElement('button');
  button.type = 'submit';
  button.className = 'link';
  button.value = address;
  button.textContent = m.wallet_remove;
  button.setAttribute('aria-label', `${m.wallet_remove} ${address}`);
  row.append(name, button);
  return row;
}

export function attachAccountMfa(page: Page, element: HTMLFormElement): AttachedForm {
  const { api, m } = page;
  let enrolled = false;
  const codes = (list: readonly string[]) => {
    show(page, '[data-step-password]', false);
    show(page, '[data-step-app]', false);
    page.find('[data-codes]')?.replaceChildren(
      ...list.map(code => {
        const item = document.createElement('li');
        item.textContent = code;
        return item;
      }),
    );
    put(page, '[data-lead]', m.codes_once);
    show(page, '[data-step-codes]');
  };
  const confirm = page.find<HTMLFormElement>('[data-confirm]');
  if (confirm) new AttachedForm(confirm, m, async ({ code = '' }) => codes((await api.confirmMfa(code.replace(/\s/g, ''))).recovery_codes));
  void arrive(page, '/account/mfa', async () => {
    const own = await api.account();
    enrolled = own.mfa_enrolled;
    if (!own.has_password) withoutPassword(page, '/account/mfa');
    put(page, '[data-lead]', !own.has_password ? '' : enrolled ? m.second_factor_change : m.second_factor_begin);
    if (enrolled) put(page, '[data-step-password] [type=submit]', m.renew_codes);
    show(page, '[data-when-enrolled]', enrolled);
    show(page, '[data-step-password]');
  });
  return new AttachedForm(element, m, async ({ password = '' }, decision) => {
    if (enrolled && decision === 'remove') {
      await api.removeMfa(password);
      show(page, '[data-step-password]', false);
      put(page, '[data-lead]', '');
      return page.say(m.factor_removed);
    }
    if (enrolled) return codes((await api.renewRecoveryCodes(password)).recovery_codes);
    showApp(page, await api.beginMfa(password));
  });
}

/** Drawn here from its modules: no picture of the secret is fetched from anywhere. */
function showApp(page: Page, { secret, otpauth_uri, qr }: Authenticator): void {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${qr.size} ${qr.size}`);
  const back = document.createElementNS(SVG, 'rect');
  for (const side of ['width', 'height']) back.setAttribute(side, String(qr.size));
  back.setAttribute('fill', '#ffffff');
  const modules = document.createElementNS(SVG, 'path');
  modules.setAttribute('d', qr.path);
  modules.setAttribute('fill', '#000000');
  modules.setAttribute('shape-rendering', 'crispEdges');
  svg.append(back, modules);
  page.find('[data-qr]')?.replaceChildren(svg);
  put(page, '[data-secret]', (secret.match(/.{1,4}/g) ?? []).join(' '));
  page.find('[data-otpauth]')?.setAttribute('href', otpauth_uri);
  put(page, '[data-lead]', page.m.scan);
  show(page, '[data-step-password]', false);
  show(page, '[data-step-app]');
  page.find<HTMLInputElement>('#code')?.focus();
}
