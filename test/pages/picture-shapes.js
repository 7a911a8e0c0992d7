// Collects the boxes and the lines of text of a page, from the back to the front: pictures.ts runs it in the browser.
(() => {
  const shapes = []
  const isClear = (colour) => colour === 'transparent' || colour.endsWith(', 0)')
  const write = (text, box, style) => {
    if (text.trim() === '') return
    const size = parseFloat(style.fontSize)
    const y = (box.top + box.bottom) / 2 + size * 0.35
    const [isCode, isLink] = [style.fontFamily.includes('monospace'), style.textDecorationLine === 'underline']
    shapes.push({ kind: 'text', x: box.left, y, width: box.width, size, weight: style.fontWeight, fill: style.color, isCode, isLink, text: text.trim() })
  }
  /** Each line of a text is what its words at one height are. */
  const writeText = (node, style) => {
    let line
    const end = () => { if (line !== undefined) write(line.text, { ...line.box, width: line.box.right - line.box.left }, style) }
    for (const { 0: word, index } of node.data.matchAll(/\S+/g)) {
      const range = document.createRange()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const { left, right, top, bottom, width } = range.getBoundingClientRect()
      if (line !== undefined && Math.abs(line.box.top - top) < 2) {
        line.text += ` ${word}`
        line.box.right = right
      } else {
        end()
        line = { text: word, box: { left, right, top, bottom, width } }
      }
    }
    end()
  }
  const visit = (element) => {
    const style = globalThis.getComputedStyle(element)
    const { left, top, right, bottom, width, height } = element.getBoundingClientRect()
    if (width < 2 || height < 2 || !element.checkVisibility() || style.clipPath !== 'none') return
    const sides = [style.borderTopWidth, style.borderRightWidth, style.borderBottomWidth, style.borderLeftWidth].map(parseFloat)
    const fill = isClear(style.backgroundColor) ? 'none' : style.backgroundColor
    const stroke = sides[3] === 0 ? style.borderTopColor : style.borderLeftColor
    if (fill !== 'none' || sides.some((side) => side > 0)) {
      shapes.push({ kind: 'box', x: left, y: top, width, height, radius: parseFloat(style.borderTopLeftRadius) || 0, fill, stroke, sides })
    }
    if (/^(INPUT|SELECT)$/.test(element.tagName)) {
      const inner = left + parseFloat(style.paddingLeft) + 1
      if (element.type !== 'checkbox') write(element.value, { left: inner, top, bottom, width: 0 }, style)
      return
    }
    if (style.display === 'list-item' && style.listStyleType === 'disc') write('•', { left: left - 16, top, bottom: top + 24, width: 0 }, style)
    for (const child of element.childNodes) {
      if (child.nodeType === 3) writeText(child, style)
      if (child.nodeType === 1) visit(child)
    }
    if (element.tagName === 'SUMMARY') write('⌄', { left: right - 26, top: top - 6, bottom: bottom - 6, width: 10 }, style)
  }
  visit(document.body)
  return shapes
})()
