// Passkeys (WebAuthn) on the pages that use them. Everything else works without a script.
// A page has one container `[data-passkey]` in a form: its JSON has the options, and it contains the button, the texts and the hidden field.
(() => {
  'use strict'

  /** Milliseconds after which a challenge is renewed: before it expires. */
  const RENEWED_AFTER = 4 * 60 * 1000

  const container = document.querySelector('[data-passkey]')
  const signals = document.querySelector('[data-signals]')
  const isAble = window.PublicKeyCredential !== undefined && navigator.credentials !== undefined

  const toBytes = (text) => Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))
  const toText = (buffer) => btoa(Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join(''))
    .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  const toDescriptors = (list) => list.map(({ id, transports, ...rest }) => ({ ...rest, id: toBytes(id), ...(transports.length > 0 && { transports }) }))

  /** The options of a browser, of their JSON. */
  function readOptions ({ challenge, user, allowCredentials, excludeCredentials, ...rest }) {
    return {
      ...rest,
      challenge: toBytes(challenge),
      ...(user && { user: { ...user, id: toBytes(user.id) } }),
      ...(allowCredentials && { allowCredentials: toDescriptors(allowCredentials) }),
      ...(excludeCredentials && { excludeCredentials: toDescriptors(excludeCredentials) })
    }
  }

  /** The JSON of a credential. `toJSON` is missing in some browsers, and fails with what some password managers return. */
  function writeCredential (credential) {
    const { id, rawId, type, response } = credential
    const { clientDataJSON, attestationObject, authenticatorData, signature, userHandle } = response
    const written = attestationObject
      ? { attestationObject: toText(attestationObject), transports: response.getTransports?.() ?? [] }
      : { authenticatorData: toText(authenticatorData), signature: toText(signature), ...(userHandle?.byteLength > 0 && { userHandle: toText(userHandle) }) }
    const { credProps } = credential.getClientExtensionResults?.() ?? {}
    return JSON.stringify({
      id, rawId: toText(rawId), type, response: { clientDataJSON: toText(clientDataJSON), ...written }, ...(credProps && { clientExtensionResults: { credProps } })
    })
  }

  /** Tells the browser which passkeys there are (WebAuthn level 3, 5.1.10). Few browsers listen, and none must. */
  function signal () {
    for (const [method, details] of Object.entries(JSON.parse(signals.dataset.signals))) {
      window.PublicKeyCredential?.[method]?.(details)?.catch(() => {})
    }
  }

  function run () {
    const form = container.closest('form')
    const find = (part) => container.querySelector(`[data-part=${part}]`)
    const [button, failed, none, field] = ['button', 'failed', 'none', 'field'].map(find)
    let { mode, conditional, options } = JSON.parse(container.dataset.passkey)
    let readAt = performance.now()
    let waiting

    if (!isAble) {
      none.hidden = false
      return
    }
    none.hidden = true
    button.hidden = false

    /** Reads the page again for another challenge. A page that does not show it again keeps the one that it has. */
    async function renew () {
      const response = await fetch(window.location.href, { credentials: 'same-origin', headers: { accept: 'text/html' } })
      const page = new window.DOMParser().parseFromString(await response.text(), 'text/html')
      const fresh = page.querySelector('[data-passkey]')
      const read = fresh && JSON.parse(fresh.dataset.passkey)
      if (!response.ok || read?.mode !== mode) return
      options = read.options
      readAt = performance.now()
      const name = 'input[name=xsrf]'
      const [former, next] = [form.querySelector(name), fresh.closest('form').querySelector(name)]
      if (former && next) former.value = next.value
    }

    async function ask (more) {
      if (performance.now() - readAt > RENEWED_AFTER) await renew().catch(() => {})
      const publicKey = readOptions(options)
      return mode === 'create' ? await navigator.credentials.create({ publicKey, ...more }) : await navigator.credentials.get({ publicKey, ...more })
    }

    function send (credential) {
      field.value = writeCredential(credential)
      form.submit()
    }

    /** Offers passkeys among the accounts that the browser fills in. It waits until somebody chooses one. */
    async function offer () {
      waiting = new AbortController()
      const { signal } = waiting
      const timer = setTimeout(() => { restart() }, RENEWED_AFTER + 1000)
      try {
        send(await ask({ mediation: 'conditional', signal }))
      } catch {
        // Aborted, or nothing was chosen: the button is there too.
      } finally {
        clearTimeout(timer)
      }
    }

    function restart () {
      waiting?.abort()
      return offer()
    }

    const optional = [...form.querySelectorAll('[data-instead]')]
    button.addEventListener('click', async (event) => {
      event.preventDefault()
      // A passkey stands for these fields, and not for the others.
      for (const input of optional) input.required = false
      const isComplete = form.reportValidity()
      for (const input of optional) input.required = true
      if (!isComplete) return
      failed.hidden = true
      button.disabled = true
      waiting?.abort()
      try {
        send(await ask())
      } catch {
        failed.hidden = false
        button.disabled = false
        button.focus()
        if (conditional && isOffering) offer()
      }
    })

    let isOffering = false
    if (conditional && window.PublicKeyCredential.isConditionalMediationAvailable) {
      window.PublicKeyCredential.isConditionalMediationAvailable().then((isAvailable) => {
        isOffering = isAvailable
        if (isAvailable) offer()
      }, () => {})
    }
  }

  if (signals) signal()
  if (container) run()
})()
