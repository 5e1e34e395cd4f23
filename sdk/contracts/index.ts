/** The first-party contracts, for verticals: what the platform's services promise, and their events (KRN-025). */
export { certificateAuthority } from '@platform/certificate-authority/contract';
export { eventBus } from '@platform/event-bus/contract';
export { identity } from '@platform/identity/contract';
export { registry } from '@platform/registry/contract';
export { ingress } from '@platform/ingress/contract';
export { web } from '@platform/web/contract';
export { gateway } from '@platform/gateway/contract';
export { notification } from '@platform/notification/contract';
export { storage } from '@platform/storage/contract';
export { functions } from '@platform/functions/contract';
export { scheduler } from '@platform/scheduler/contract';
export { appStore } from '@platform/app-store/contract';
export { workflow } from '@platform/workflow/contract';
export { statistics } from '@platform/statistics/contract';
export { supervisor } from '@platform/supervisor/contract';
