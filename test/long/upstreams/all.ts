import t from 'tap'
import { skip, startChromium } from '../../pages/chromium.ts'
import { glewlwyd } from './glewlwyd.ts'
import { keycloak } from './keycloak.ts'
import { leaveAll } from './leave.ts'
import { oidcProvider } from './oidc-provider.ts'
import { ours } from './ours.ts'
import { walk } from './walk.ts'

t.setTimeout(3_600_000)

// The names of providers as arguments: only these run.
const asked = process.argv.slice(2)

t.test('people who leave Keycloak', { skip: keycloak.skip, timeout: 1_800_000 }, async (t) => {
  if (asked.length === 0 || asked.includes('leave')) await leaveAll(t, keycloak)
})

t.test('sign-ins with providers of others, in Chromium', { skip, timeout: 3_600_000 }, async (t) => {
  startChromium(t)
  for (const kind of [ours, oidcProvider, glewlwyd, keycloak]) {
    if (asked.length > 0 && !asked.some((word) => kind.name.includes(word))) continue
    await t.test(kind.name, { skip: kind.skip, timeout: 1_800_000 }, async (t) => await walk(t, kind))
  }
})
