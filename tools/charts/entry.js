// Parts of Observable Plot that the report uses.
export {
  areaY, axisX, axisY, barX, cell, dot, frame, gridX, gridY, line, link, plot, rect, rectX, ruleX, ruleY, text, tickX,
} from "@observablehq/plot";
