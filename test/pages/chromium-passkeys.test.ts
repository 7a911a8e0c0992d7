import type { CDPSession } from 'playwright-core'
import t from 'tap'
import { en } from '../../lib/pages/texts/en.ts'
import type { UserRecord } from '../../lib/records/user.ts'
import type { CredentialRecord } from '../../lib/way.ts'
import { readMaterial, toUserHandle } from '../../lib/ways/passkey-material.ts'
import { BROWSER, TAMPERED } from '../helpers/tampered.ts'
import { waitUntil } from '../helpers/wait.ts'
import { type Harness, atLocalhost, startHarness } from '../oidc/harness.ts'
import { type Tab, findViolations, heading, openMenu, press, skip, startChromium, typeIn, withTab } from './chromium.ts'

const { account: own, errors, passkey: words, secondStep, signIn: signInTexts } = en

interface Device { resident?: boolean, uv?: boolean, backedUp?: boolean }

interface Authenticator {
  session: CDPSession
  id: string
  /** The credentials that a page has had it forget. */
  deleted: string[]
}

/** Gives the tab an authenticator of its own. */
async function addAuthenticator (tab: Tab, { resident = true, uv = true, backedUp = false }: Device = {}): Promise<Authenticator> {
  const session = await tab.context().newCDPSession(tab)
  await session.send('WebAuthn.enable')
  const deleted: string[] = []
  session.on('WebAuthn.credentialDeleted', ({ credentialId }) => deleted.push(credentialId))
  const { authenticatorId: id } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: uv ? 'internal' : 'usb',
      hasResidentKey: resident,
      hasUserVerification: uv,
      isUserVerified: uv,
      automaticPresenceSimulation: true,
      defaultBackupEligibility: backedUp,
      defaultBackupState: backedUp
    }
  })
  return { session, id, deleted }
}

/** Keeps pages from offering passkeys by themselves: a virtual authenticator would take the offer at once. */
const withoutOffer = async (tab: Tab) => await tab.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false')

/** The page of a refusal has status 400, which the console says. */
const forgive = (tab: Tab) => tab.complaints.splice(0).filter((text) => !text.includes('400 (Bad Request)'))

t.setTimeout(180_000)

t.test('passkeys in Chromium', { skip, timeout: 180_000 }, async (t) => {
  startChromium(t)
  const harness: Harness = await startHarness(t, { factors: { roles: ['ops'] }, ...await atLocalhost() })
  const { kit, url } = harness
  const { store, users, ways, passkeys } = kit.app.identity
  const records = store.collection<UserRecord>('users')
  let count = 0

  async function addPerson () {
    const person = { account: `person${count++}@example.com`, password: 'correct horse' }
    return { ...person, ...await users.create({ data: person }) }
  }

  type Person = Awaited<ReturnType<typeof addPerson>>

  const signOut = async (tab: Tab) => {
    await openMenu(tab)
    await press(tab, 'Sign out')
  }

  /** Adds a passkey to a person who is signed in. */
  async function enrol (tab: Tab, { password }: Person): Promise<void> {
    await tab.goto(`${url}/account/factors/passkeys`)
    await tab.getByLabel(own.passkeyName).fill('Laptop')
    await tab.getByLabel(own.currentPassword).fill(password)
    await press(tab, 'Continue')
    await press(tab, words.create)
    await tab.getByLabel(own.kept).check()
    await press(tab, own.turnOn)
    t.match(await tab.getByRole('status').textContent(), own.done.passkey)
  }

  /** A person with a passkey, in a tab where they are signed out. */
  async function withPasskey (device: Device, run: (tab: Tab, person: Person, authenticator: Authenticator) => Promise<void>): Promise<void> {
    const person = await addPerson()
    await withTab(t, { locale: 'en-GB' }, async (tab) => {
      const authenticator = await addAuthenticator(tab, device)
      await tab.goto(`${url}/account`)
      await typeIn(tab, person)
      await enrol(tab, person)
      await signOut(tab)
      await run(tab, person, authenticator)
    })
  }

  const readPasskey = async ({ user_id }: Person) => {
    const user = (await records.get(user_id))!
    const [id, way] = Object.entries(user.ways ?? {}).find(([, { kind }]) => kind === 'passkey')!
    return { id, way, epoch: user.epoch, material: readMaterial((await store.collection<CredentialRecord>('credentials').get(id))!) }
  }

  /** Removes the passkey of a person behind the back of their device. */
  async function remove (person: Person): Promise<string> {
    const { id, epoch, material } = await readPasskey(person)
    await ways.remove({ user_id: person.user_id, epoch }, id, { isEnd: false })
    return Buffer.from(material.credential_id, 'base64url').toString('base64')
  }

  await t.test('resident, verifying and backed up: sign-in by conditional UI, proof of an operation, renaming and removal', async (t) => {
    await withPasskey({ backedUp: true }, async (tab, person, { session, id, deleted }) => {
      t.match((await readPasskey(person)).material, { backed_up: true, backup_eligible: true, transports: ['internal'] })
      t.match((await readPasskey(person)).way, { uv: true, rp: 'localhost' })
      await tab.goto(`${url}/account/methods`)
      await tab.waitForURL(`${url}/account/methods`)
      t.equal(await heading(tab), own.sections.methods, 'the browser offered it and it signed in')
      t.match(await tab.locator('main').textContent(), /Laptop.*from Chrome on Linux, /s)

      await tab.goto(`${url}/account/password`)
      await tab.getByLabel(own.newPassword, { exact: true }).fill('another horse')
      await press(tab, words.instead)
      t.match(await tab.getByRole('status').textContent(), own.done.password, 'a passkey that verifies stands for the password')
      await tab.goto(`${url}/account/password`)
      await tab.getByLabel(own.currentPassword).fill('another horse')
      await press(tab, words.instead)
      t.equal(await tab.locator('#password:focus').count(), 1, 'and for no other field')

      await tab.goto(`${url}/account`)
      await tab.getByLabel(own.name, { exact: true }).fill('Ann of the House')
      await press(tab, own.save)
      await waitUntil('the device has the new name', async () => (await session.send('WebAuthn.getCredentials', { authenticatorId: id })).credentials.some(({ userDisplayName }) => userDisplayName === 'Ann of the House'))

      await tab.goto(`${url}/account/methods`)
      await tab.getByRole('link', { name: /^Manage/ }).click()
      await tab.getByLabel(own.name, { exact: true }).fill('Tablet')
      await press(tab, own.save)
      await tab.getByRole('link', { name: /^Manage/ }).click()
      await tab.getByRole('link', { name: /^Remove/ }).click()
      t.match(await tab.locator('main').textContent(), own.removeLastWhy)
      await press(tab, words.instead)
      t.match(await tab.getByRole('status').textContent(), own.done['passkey-removed'])
      t.match(await tab.locator('main').textContent(), own.noFactors)
      await waitUntil('the device forgets the passkey', () => deleted.length === 1)
      t.equal(deleted.length, 1, 'the device has forgotten it')
    })
  })

  await t.test('hanko#1593: a removed passkey at the button, with a message; the device forgets it', async (t) => {
    await withPasskey({}, async (tab, person, { deleted }) => {
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      await press(tab, words.signIn)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      await signOut(tab)
      const id = await remove(person)
      await tab.goto(`${url}/account`)
      await press(tab, words.signIn)
      await tab.getByText(errors.wrongPasskey).waitFor()
      await waitUntil('the device forgets the passkey', () => deleted.length > 0)
      t.strictSame(deleted, [id])
      t.strictSame(forgive(tab), [])
      await typeIn(tab, person)
      t.equal(await heading(tab), own.sections.profile, 'the password lets in')
    })
  })

  await t.test('hanko#441: a removed passkey among the accounts that the browser fills in, and the page goes on offering', async (t) => {
    await withPasskey({}, async (tab, person, { deleted }) => {
      const id = await remove(person)
      await tab.goto(`${url}/account`)
      await tab.getByText(errors.wrongPasskey).waitFor()
      await waitUntil('the device forgets the passkey', () => deleted.length > 0)
      t.strictSame(deleted, [id])
      t.strictSame(forgive(tab), [])
      await typeIn(tab, person)
      await enrol(tab, person)
      await signOut(tab)
      await tab.goto(`${url}/account`)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      t.pass('the next passkey is offered')
    })
  })

  await t.test('resident and not verifying: the password follows, and the page says why', async (t) => {
    await withPasskey({}, async (tab, person) => {
      // Chromium's device verifies whenever it is asked to, and makes no resident passkey if it cannot. So it is asked not to.
      await tab.addInitScript(`{
        const get = navigator.credentials.get.bind(navigator.credentials)
        navigator.credentials.get = ({ publicKey, ...rest }) => get({ ...rest, publicKey: { ...publicKey, userVerification: 'discouraged' } })
      }`)
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      await press(tab, words.signIn)
      await tab.getByText(signInTexts.unverifiedWhy).waitFor()
      await typeIn(tab, person)
      t.equal(await heading(tab), own.sections.profile)
      await tab.goto(`${url}/account/password`)
      await tab.getByLabel(own.newPassword, { exact: true }).fill('another horse')
      await press(tab, words.instead)
      await tab.getByText(errors.passkeyUnverified).waitFor()
      await tab.getByLabel(own.currentPassword).fill(person.password)
      await tab.getByLabel(own.newPassword, { exact: true }).fill('another horse')
      await press(tab, words.instead)
      t.match(await tab.getByRole('status').textContent(), own.done.password, 'together they are enough')
      t.strictSame(forgive(tab), [])
    })
  })

  await t.test('neither resident nor verifying: it comes second', async (t) => {
    await withPasskey({ resident: false, uv: false }, async (tab, person) => {
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      await press(tab, words.signIn)
      t.equal(await tab.getByRole('alert').textContent(), words.failed, 'the device knows no passkey for the site')
      await typeIn(tab, person)
      t.equal(await heading(tab), secondStep.title.passkey)
      await tab.getByRole('link', { name: secondStep.other.recovery }).click()
      t.equal(await heading(tab), secondStep.title.recovery)
      await tab.getByRole('link', { name: secondStep.other.passkey }).click()
      await press(tab, words.use)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      t.strictSame(forgive(tab), [])
    })
  })

  await t.test('verifying and not resident: it comes second, and the browser says so when it is made', async (t) => {
    await withPasskey({ resident: false }, async (tab, person) => {
      const { ways: named = {} } = (await records.get(person.user_id))!
      t.match(Object.values(named).filter(({ kind }) => kind === 'passkey'), [{ uv: true, rk: false }])
      t.equal(await ways.mayRemove((await records.get(person.user_id))!, 'password'), false)
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      await press(tab, words.signIn)
      t.equal(await tab.getByRole('alert').textContent(), words.failed, 'the device knows no passkey for the site')
      await typeIn(tab, person)
      await press(tab, words.use)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      t.strictSame(forgive(tab), [])
    })
  })

  await t.test('a page that was open for longer than a challenge is good', async (t) => {
    await withPasskey({}, async (tab) => {
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      // The page counts its own time: six minutes pass on both sides.
      await tab.evaluate('(() => { const now = performance.now.bind(performance); performance.now = () => now() + 6 * 60_000 })()')
      kit.clock.advance(6 * 60_000)
      await press(tab, words.signIn)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      t.pass('it has read another challenge')
    })
  })

  await t.test('without a script, and in a browser without WebAuthn, everything else works', async (t) => {
    const person = await addPerson()
    await kit.passkey(person.account)
    for (const isOff of [true, false]) {
      await withTab(t, { locale: 'en-GB', javaScriptEnabled: !isOff }, async (tab) => {
        if (!isOff) await tab.addInitScript('delete window.PublicKeyCredential')
        await tab.goto(`${url}/account`)
        t.equal(await tab.getByRole('button', { name: words.signIn }).isVisible(), false)
        t.equal(await tab.getByText(words.none).isVisible(), !isOff)
        await typeIn(tab, person)
        t.equal(await heading(tab), secondStep.title.passkey)
        t.ok(await tab.getByText(words.none).isVisible())
        await tab.getByRole('link', { name: secondStep.other.recovery }).click()
        t.equal(await heading(tab), secondStep.title.recovery)
      })
    }
  })

  await t.test('its assertions are refused when they were tampered with', async (t) => {
    const person = await addPerson()
    const other = await addPerson()
    const theirs = await kit.passkey(other.account)
    await withTab(t, {}, async (tab) => {
      await addAuthenticator(tab)
      await tab.goto(`${url}/account`)
      await typeIn(tab, person)
      await enrol(tab, person)
      await tab.evaluate(`
        const bytes = (text) => Uint8Array.fromBase64(text, { alphabet: 'base64url' })
        window.sign = async ({ challenge, rpId }) => JSON.stringify((await navigator.credentials.get({ publicKey: { challenge: bytes(challenge), rpId } })).toJSON())`)
      const get = async (options: { challenge: string, rpId: string }) => await tab.evaluate<string>(`sign(${JSON.stringify({ challenge: options.challenge, rpId: options.rpId })})`)
      const rows = TAMPERED.filter(({ isSigned }) => isSigned !== true)
      t.ok(rows.length >= 20)
      for (const { name, make } of rows) {
        const text = await make({ passkeys, advance: kit.clock.advance, get, getOther: theirs.answer, other: { user_id: other.user_id, handle: toUserHandle(other.user_id) } })
        t.strictSame(await passkeys.verify('begin', BROWSER, text), { refused: true }, name)
      }
      t.match(await passkeys.verify('begin', BROWSER, await get(await passkeys.ask('begin', BROWSER))), { user: { id: person.user_id }, uv: true })
    })
  })

  await t.test('the first factor within a sign-in that demands one', async (t) => {
    const person = await addPerson()
    await users.patch(person.user_id, { data: { roles: { ops: true } } }, { user_id: 'operator', isAdmin: true })
    await withTab(t, { bypassCSP: true, locale: 'en-GB' }, async (tab) => {
      await addAuthenticator(tab)
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      await typeIn(tab, person)
      await tab.getByRole('link', { name: en.enrol.other.passkey }).click()
      await tab.getByRole('button', { name: words.create }).waitFor()
      t.strictSame(await findViolations(tab), [], 'accessible')
      await press(tab, words.create)
      await tab.getByLabel(own.kept).check()
      await press(tab, own.turnOn)
      await tab.getByRole('heading', { name: own.sections.profile }).waitFor()
      t.match((await readPasskey(person)).way, { uv: true, rp: 'localhost' })
    })
  })

  await t.test('the pages are accessible while the script runs', async (t) => {
    const person = await addPerson()
    await withTab(t, { bypassCSP: true, locale: 'de-DE' }, async (tab) => {
      await addAuthenticator(tab)
      await withoutOffer(tab)
      await tab.goto(`${url}/account`)
      t.strictSame(await findViolations(tab), [], 'sign-in')
      await tab.getByLabel('E-Mail-Adresse oder Benutzername').fill(person.account)
      await tab.getByLabel('Passwort').fill(person.password)
      await tab.getByRole('button', { name: 'Anmelden', exact: true }).click()
      await tab.goto(`${url}/account/factors/passkeys`)
      await tab.getByLabel('Aktuelles Passwort').fill(person.password)
      await press(tab, 'Weiter')
      t.strictSame(await findViolations(tab), [], 'a new passkey')
      await press(tab, 'Passkey erstellen')
      await tab.getByLabel('Ich habe meine Codes gespeichert').check()
      await press(tab, 'Zwei-Faktor-Authentifizierung aktivieren')
      t.strictSame(await findViolations(tab), [], 'the list')
      await signOutIn(tab)
      await tab.goto(`${url}/account`)
      await press(tab, 'Mit Passkey anmelden')
      await tab.getByRole('heading', { name: 'Profil' }).waitFor()
    })
  })
})

async function signOutIn (tab: Tab): Promise<void> {
  await openMenu(tab)
  await press(tab, 'Abmelden')
}
